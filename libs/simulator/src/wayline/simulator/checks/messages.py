"""What Anthropic's Messages refuses, in its words where they are known."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from wayline.simulator.checks.media import check_claude_document, check_claude_image
from wayline.simulator.models import Facts
from wayline.simulator.refusals import Refusal
from wayline.simulator.request import Body

FIELDS = frozenset(
    "cache_control container diagnostics inference_geo max_tokens messages metadata model output_config service_tier "
    "speed stop_sequences stream system thinking tool_choice tools user_profile_id workspace_id".split()
)
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
THINKING_TOKENS_MIN = 1_024


def check(body: Body, facts: Facts, *, counting: bool = False) -> None:
    """Raise Refusal for the first thing that is wrong; `counting` needs no output limit."""
    for name in body:
        # temperature, top_p and top_k are among those that are not taken any more.
        if name not in FIELDS:
            raise Refusal(f"{name}: Extra inputs are not permitted")
    if not counting:
        _check_output_limit(body, facts)
    _check_tools(body, facts)
    _check_thinking(body, facts)
    _check_format((body.get("output_config") or {}).get("format"))
    _check_messages(body.get("messages"), facts)


def _check_output_limit(body: Body, facts: Facts) -> None:
    limit = body.get("max_tokens")
    if limit is None:
        raise Refusal("max_tokens: Field required")
    if not isinstance(limit, int) or limit < 0:
        raise Refusal("max_tokens: Input should be greater than or equal to 0")
    if limit > facts.output_limit:
        most = f"which is the maximum allowed number of output tokens for {facts.name}"
        raise Refusal(f"max_tokens: {limit} > {facts.output_limit}, {most}")


def _check_tools(body: Body, facts: Facts) -> None:
    tools = body.get("tools") or ()
    names = [tool.get("name", "") for tool in tools]
    for at, name in enumerate(names):
        if not TOOL_NAME.fullmatch(name):
            raise Refusal(f"tools.{at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    if len(set(names)) < len(names):
        raise Refusal("tools: Tool names must be unique.")
    if tools and all(tool.get("defer_loading") for tool in tools):
        raise Refusal("At least one tool must have defer_loading=false.")
    for tool in tools:
        if tool.get("defer_loading") and tool.get("cache_control"):
            rule = "Tools with defer_loading cannot use prompt caching."
            raise Refusal(f"Tool '{tool['name']}' cannot have both defer_loading=true and cache_control set. {rule}")
    for at, tool in enumerate(tools):
        if not tool.get("type") and (tool.get("input_schema") or {}).get("type") != "object":
            raise Refusal(f"tools.{at}.custom.input_schema.type: Input should be 'object'")
    choice = body.get("tool_choice") or {}
    if choice.get("type") not in ("any", "tool"):
        return
    if not facts.forced_tools:
        raise Refusal(f"tool_choice: type '{choice['type']}' is not supported by {facts.name}; use 'auto' or 'none'.")
    if choice["type"] == "tool" and choice.get("name") not in names:
        raise Refusal(f"Tool '{choice.get('name')}' not found in provided tools")
    if (body.get("thinking") or {}).get("type") in ("adaptive", "enabled"):
        raise Refusal("Thinking may not be enabled when tool_choice forces tool use.")


def _check_thinking(body: Body, facts: Facts) -> None:
    thinking = body.get("thinking") or {}
    if thinking.get("type") == "disabled" and facts.always_thinks:
        raise Refusal(f"thinking: '{facts.name}' does not support disabling thinking.")
    budget = thinking.get("budget_tokens")
    if thinking.get("type") == "enabled":
        if not isinstance(budget, int) or budget < THINKING_TOKENS_MIN:
            raise Refusal(
                f"thinking.enabled.budget_tokens: Input should be greater than or equal to {THINKING_TOKENS_MIN}"
            )
        if budget >= body.get("max_tokens", budget + 1):
            raise Refusal("`max_tokens` must be greater than `thinking.budget_tokens`.")
    if (body.get("output_config") or {}).get("effort") and not facts.effort:
        raise Refusal("This model does not support the effort parameter.")


def _check_format(form: Any) -> None:
    if not form:
        return
    if form.get("type") != "json_schema" or not isinstance(form.get("schema"), dict):
        raise Refusal("output_config.format: Input should be a JSON schema format")
    for found in objects_in(form["schema"]):
        if found.get("additionalProperties") is not False:
            what = "For 'object' type, 'additionalProperties' must be explicitly set to false"
            raise Refusal(f"output_config.format.schema: {what}")


def objects_in(schema: Any) -> Sequence[Mapping[str, Any]]:
    """Yield every object schema within one."""
    if isinstance(schema, list):
        return [found for part in schema for found in objects_in(part)]
    if not isinstance(schema, dict):
        return []
    below = [found for part in schema.values() for found in objects_in(part)]
    return [schema, *below] if schema.get("type") == "object" else below


def _check_messages(messages: Any, facts: Facts) -> None:
    if not isinstance(messages, list) or not messages:
        raise Refusal("messages: at least one message is required")
    for at, message in enumerate(messages):
        if message.get("role") not in ("user", "assistant", "system"):
            raise Refusal(f"messages.{at}.role: Input should be 'user', 'assistant' or 'system'")
        if message["role"] == "system":
            _check_system(messages, at, facts)
        for n, block in enumerate(blocks_of(message)):
            _check_block(block, message["role"], f"messages.{at}.content.{n}", facts)
    if messages[0]["role"] != "user":
        raise Refusal('messages: first message must use the "user" role')
    if messages[-1]["role"] == "assistant" and not facts.prefill:
        rule = "The conversation must end with a user message."
        raise Refusal(f"This model does not support assistant message prefill. {rule}")
    _check_calls(messages)


def _check_system(messages: Sequence[Body], at: int, facts: Facts) -> None:
    """Check that a system message is text, after a user message, and last or before an assistant's."""
    where = f"messages.{at}"
    if not facts.system_messages:
        raise Refusal(f"{where}.role: system messages are not supported by {facts.name}")
    if at == 0 or messages[at - 1].get("role") != "user":
        raise Refusal(f"{where}: a system message must follow a user message")
    if at + 1 < len(messages) and messages[at + 1].get("role") != "assistant":
        raise Refusal(f"{where}: a system message must be the last or stand before an assistant message")
    if any(block.get("type") != "text" for block in blocks_of(messages[at])):
        raise Refusal(f"{where}.content: a system message holds text only")


def _check_block(block: Body, role: str, at: str, facts: Facts) -> None:
    kind = block.get("type")
    empty = kind == "text" and not block.get("text")
    if block.get("cache_control") and (empty or kind in ("thinking", "redacted_thinking")):
        raise Refusal(f"{at}.cache_control: cannot be set for empty text or thinking blocks")
    if empty and role != "assistant":
        raise Refusal(f"{at}: text content blocks must be non-empty")
    if kind in ("tool_use", "thinking") and role != "assistant":
        raise Refusal(f"{at}: `{kind}` blocks can only be in `assistant` messages")
    if kind == "tool_result" and role != "user":
        raise Refusal(f"{at}: `tool_result` blocks can only be in `user` messages")
    if kind == "tool_use" and not isinstance(block.get("input"), dict):
        raise Refusal(f"{at}.tool_use.input: Input should be an object")
    if kind in ("image", "document") and role != "user":
        raise Refusal(f"{at}: `{kind}` blocks can only be in `user` messages")
    if kind == "image":
        check_claude_image(block, at)
    elif kind == "tool_result":
        parts = block.get("content")
        for n, part in enumerate(parts if isinstance(parts, list) else ()):
            if part.get("type") == "image":
                check_claude_image(part, f"{at}.tool_result.content.{n}")
    elif kind == "document":
        check_claude_document(block, at, facts.pages_max)


def _check_calls(messages: Sequence[Body]) -> None:
    """Check that every call is answered first in the very next message, and nothing else is answered."""
    asked: list[str] = []
    seen: set[str] = set()
    for at, message in enumerate(messages):
        blocks = blocks_of(message)
        leading = 0
        while leading < len(blocks) and blocks[leading].get("type") == "tool_result":
            leading += 1
        answered = [block.get("tool_use_id", "") for block in blocks[:leading]]
        missing = [call for call in asked if call not in answered]
        if missing:
            rule = "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
            found = f"`tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(missing)}"
            raise Refusal(f"messages.{at - 1}: {found}. {rule}")
        for n, block in enumerate(blocks):
            call = block.get("tool_use_id", "")
            if block.get("type") == "tool_result" and (call not in asked or answered.count(call) != 1):
                rule = "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
                found = f"unexpected `tool_use_id` found in `tool_result` blocks: {call}"
                raise Refusal(f"messages.{at}.content.{n}: {found}. {rule}")
        asked = [block.get("id", "") for block in blocks if block.get("type") == "tool_use"]
        if seen.intersection(asked) or len(set(asked)) < len(asked):
            raise Refusal("messages: `tool_use` ids must be unique")
        seen.update(asked)
    if asked:
        found = f"`tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(asked)}"
        raise Refusal(f"messages.{len(messages) - 1}: {found}.")


def blocks_of(message: Body) -> list[Body]:
    """Return a message's content as blocks: a string is short for one of text."""
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
