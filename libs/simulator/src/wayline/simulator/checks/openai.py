"""What OpenAI refuses in Responses and Chat Completions, in its words where they are known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wayline.simulator.checks.google import check_google
from wayline.simulator.checks.messages import objects_in
from wayline.simulator.models import Facts
from wayline.simulator.refusals import Refusal
from wayline.simulator.request import Body

RESPONSES_FIELDS = frozenset(
    "access_programs background background_options context_management conversation image include input instructions "
    "max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls previous_response_id prompt "
    "prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store "
    "stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user".split()
)
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
OUTPUT_TOKENS_MIN = 16
CACHE_KEY_CHARS_MAX = 64


def check_responses(body: Body, facts: Facts, *, verified: bool) -> None:
    for name in body:
        if name not in RESPONSES_FIELDS:
            raise Refusal(f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")
    if body.get("input") is None:
        message = "Missing required parameter: 'input'."
        raise Refusal(message, param="input", code="missing_required_parameter")
    if body.get("previous_response_id"):
        message = f"Previous response with id '{body['previous_response_id']}' not found."
        raise Refusal(message, param="previous_response_id", code="previous_response_not_found")
    limit = body.get("max_output_tokens")
    if limit is not None and limit < OUTPUT_TOKENS_MIN:
        least = "integer below minimum value. Expected a value >= 16"
        message = f"Invalid 'max_output_tokens': {least}, but got {limit} instead."
        raise Refusal(message, param="max_output_tokens", code="integer_below_min_value")
    _check_limit(limit, facts, "max_output_tokens")
    _check_reasoning(body, facts, verified=verified)
    effort = (body.get("reasoning") or {}).get("effort") or _usual_effort(facts)
    _check_sampling(body, facts, effort)
    _check_cache_key(body)
    _check_names([tool.get("name") for tool in body.get("tools") or () if tool.get("type") == "function"])
    _check_search(body, facts)
    for tool in body.get("tools") or ():
        if tool.get("strict"):
            check_strict(tool.get("parameters"), f"function '{tool.get('name')}'", "tools[0].parameters")
    _check_choice(body.get("tool_choice"), [tool.get("name") for tool in body.get("tools") or ()])
    form = (body.get("text") or {}).get("format") or {}
    if form.get("type") == "json_schema" and form.get("strict"):
        check_strict(form.get("schema"), f"response_format '{form.get('name')}'", "text.format.schema")
    if isinstance(body["input"], list):
        _check_items(body["input"])


def check_chat(body: Body, facts: Facts) -> None:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refusal("Missing required parameter: 'messages'.", param="messages", code="missing_required_parameter")
    if facts.provider == "google":
        check_google(body)
    _check_names([tool["function"].get("name") for tool in body.get("tools") or ()])
    _check_answers(messages)
    if facts.provider != "openai":
        return
    if body.get("reasoning_effort") and not facts.reasons:
        raise _unsupported("reasoning_effort")
    effort = body.get("reasoning_effort") or _usual_effort(facts)
    if body.get("tools") and effort != "none":
        message = "Function tools with reasoning_effort are not supported"
        raise Refusal(
            f"{message} for {facts.name} in /v1/chat/completions. Please use /v1/responses instead.",
            param="reasoning_effort",
        )
    if body.get("max_tokens") is not None:
        message = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
        raise Refusal(message, param="max_tokens", code="unsupported_parameter")
    _check_limit(body.get("max_completion_tokens"), facts, "max_completion_tokens")
    _check_sampling(body, facts, effort)
    _check_cache_key(body)
    form = (body.get("response_format") or {}).get("json_schema") or {}
    if form.get("strict"):
        check_strict(form.get("schema"), f"response_format '{form.get('name')}'", "response_format")


def _usual_effort(facts: Facts) -> str:
    return "medium" if facts.reasons else "none"


def _check_reasoning(body: Body, facts: Facts, *, verified: bool) -> None:
    """Refuse words on reasoning to a model that does not reason, and summaries to unverified organisations."""
    reasoning = body.get("reasoning") or {}
    if not facts.reasons and (told := [name for name in ("effort", "summary") if reasoning.get(name)]):
        raise _unsupported(f"reasoning.{told[0]}")
    if not facts.reasons and "reasoning.encrypted_content" in (body.get("include") or ()):
        raise Refusal("Encrypted content is not supported with this model.", param="include")
    if reasoning.get("summary") and not verified:
        message = (
            "Your organization must be verified to generate reasoning summaries. Please go to: "
            "https://platform.openai.com/settings/organization/general and click on Verify Organization."
        )
        raise Refusal(message, param="reasoning.summary", code="unsupported_value")


def _unsupported(name: str) -> Refusal:
    message = f"Unsupported parameter: '{name}' is not supported with this model."
    return Refusal(message, param=name, code="unsupported_parameter")


def check_strict(schema: Any, what: str, param: str) -> None:
    """Check that a strict schema is closed and requires every property."""
    for found in objects_in(schema):
        rule = ""
        if found.get("additionalProperties") is not False:
            rule = "'additionalProperties' is required to be supplied and to be false."
        elif set(found.get("required") or ()) != set(found.get("properties") or ()):
            rule = "'required' is required to be supplied and to be an array including every key in properties."
        if rule:
            message = f"Invalid schema for {what}: In context=(), {rule}"
            raise Refusal(message, param=param, code="invalid_json_schema")


def _check_limit(limit: int | None, facts: Facts, name: str) -> None:
    if limit is not None and limit > facts.output_limit:
        message = f"{name} is too large: {limit}. This model supports at most {facts.output_limit} completion tokens."
        raise Refusal(message, param=name, code="invalid_value")


def _check_sampling(body: Body, facts: Facts, effort: str) -> None:
    """Refuse sampling parameters for a model that reasons, unless it is told not to."""
    for name in ("temperature", "top_p"):
        if body.get(name) not in (None, 1, 1.0) and effort != "none":
            raise _unsupported(name)


def _check_cache_key(body: Body) -> None:
    key = body.get("prompt_cache_key") or ""
    if len(key) > CACHE_KEY_CHARS_MAX:
        rule = f"Expected a string with maximum length 64, but got a string with length {len(key)} instead."
        message = f"Invalid 'prompt_cache_key': string too long. {rule}"
        raise Refusal(message, param="prompt_cache_key", code="string_above_max_length")


def _check_names(names: Iterable[str | None]) -> None:
    for at, name in enumerate(names):
        if not TOOL_NAME.fullmatch(name or ""):
            message = "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            raise Refusal(f"Invalid 'tools[{at}].name': {message}", param=f"tools[{at}].name", code="invalid_value")


def _check_search(body: Body, facts: Facts) -> None:
    """Check a search for tools that the client makes, and its output."""
    searches = [tool for tool in body.get("tools") or () if tool.get("type") == "tool_search"]
    if searches and not facts.reasons:
        message = f"Tool 'tool_search' is not supported with {facts.name}."
        raise Refusal(message, param="tools", code="unsupported_value")
    for tool in searches:
        if tool.get("execution", "server") == "client" and not isinstance(tool.get("parameters"), Mapping):
            message = "Missing required parameter: 'tools[0].parameters'."
            raise Refusal(message, param="tools", code="missing_required_parameter")
    for at, item in enumerate(body["input"] if isinstance(body["input"], list) else ()):
        if item.get("type") not in ("tool_search_call", "tool_search_output"):
            continue
        if not searches:
            raise Refusal("Tool search items need a tool of type 'tool_search'.", param=f"input[{at}]")
        if item["type"] == "tool_search_call" and not isinstance(item.get("arguments"), Mapping):
            message = f"Invalid type for 'input[{at}].arguments': expected an object."
            raise Refusal(message, param=f"input[{at}].arguments", code="invalid_type")
        if item["type"] == "tool_search_output":
            found: Any = item.get("tools")
            if not isinstance(found, list) or any(tool.get("type") != "function" for tool in found):
                raise Refusal(f"Invalid type for 'input[{at}].tools'.", param=f"input[{at}].tools", code="invalid_type")
            _check_names([tool.get("name") for tool in found])


def _check_choice(choice: Any, names: Sequence[Any]) -> None:
    if isinstance(choice, Mapping) and choice.get("type") == "function" and choice.get("name") not in names:
        raise Refusal(f"Tool choice '{choice.get('name')}' not found in 'tools' parameter.", param="tool_choice")


def _check_items(items: Sequence[Body]) -> None:
    """Check that every call has its output after it, and that an item follows each reasoning."""
    called: dict[str, bool] = {}
    for at, item in enumerate(items):
        kind = item.get("type", "message")
        if kind in ("function_call", "tool_search_call"):
            called[item.get("call_id", "")] = False
        elif kind in ("function_call_output", "tool_search_output"):
            call = item.get("call_id", "")
            if call not in called:
                raise Refusal(f"No tool call found for function call output with call_id {call}.", param="input")
            called[call] = True
        elif kind == "reasoning":
            after = items[at + 1].get("type", "message") if at + 1 < len(items) else None
            if after is None or items[at + 1].get("role") in ("user", "developer", "system"):
                name = f"Item '{item.get('id')}' of type 'reasoning'"
                raise Refusal(f"{name} was provided without its required following item.", param="input")
        elif kind == "message" and item.get("role") not in ("user", "assistant", "system", "developer"):
            known = "'assistant', 'system', 'developer', and 'user'"
            message = f"Invalid value: '{item.get('role')}'. Supported values are: {known}."
            raise Refusal(message, param=f"input[{at}].role", code="invalid_value")
    for call, answered in called.items():
        if not answered:
            raise Refusal(f"No tool output found for function call {call}.", param="input")


def _check_answers(messages: Sequence[Body]) -> None:
    """Check that tool messages follow the assistant's calls at once, one for each."""
    waiting: list[str] = []
    for at, message in enumerate(messages):
        role = message.get("role")
        if role not in ("system", "developer", "user", "assistant", "tool"):
            raise Refusal(f"Invalid value: '{role}'.", param=f"messages[{at}].role", code="invalid_value")
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                rule = "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
                raise Refusal(f"Invalid parameter: {rule}", param=f"messages.[{at}].role")
            waiting.remove(message["tool_call_id"])
            continue
        _check_none_waiting(waiting)
        waiting = [call.get("id", "") for call in message.get("tool_calls") or ()]
    _check_none_waiting(waiting)


def _check_none_waiting(waiting: Sequence[str]) -> None:
    if waiting:
        rule = "must be followed by tool messages responding to each 'tool_call_id'."
        message = f"An assistant message with 'tool_calls' {rule}"
        missing = f"The following tool_call_ids did not have response messages: {', '.join(waiting)}"
        raise Refusal(f"{message} {missing}", param="messages")
