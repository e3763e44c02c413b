"""Three scripted agent jobs, and one driver a wire format that plays an agent through the provider's own SDK."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from wayline.simulator import Say, Script, rounds

SEARCH_SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
CITY_SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["name", "people"],
    "additionalProperties": False,
}
STEPS_MAX = 10


@dataclass(frozen=True)
class Done:
    """How a job ended: the same for all wire formats."""

    answer: str
    calls: tuple[tuple[str, str], ...]
    thinking: tuple[str, ...]
    input_tokens: int
    output_tokens: int


JOBS: dict[str, tuple[Script, dict[str, Any] | None]] = {
    "a search and an answer": (
        rounds(Say(tools=(("search", {"q": "JetStream"}),)), Say(text="It is a log. " * 20)),
        None,
    ),
    "two calls at once, with thinking": (
        rounds(
            Say(
                text="Let me look.",
                tools=(("search", {"q": "a"}), ("search", {"q": "bé", "n": 2})),
                thinking="Two things to look up.",
            ),
            Say(tools=(("search", {"q": "c"}),), thinking="One more."),
            Say(text="Both found.", thinking="Enough."),
        ),
        None,
    ),
    "structured output": (
        rounds(Say(tools=(("search", {"q": "Bern"}),)), Say(value={"name": "Bern", "people": 134_591})),
        CITY_SCHEMA,
    ),
}


def result(name: str, arguments: str) -> str:
    return f"{name} of {json.loads(arguments)['q']}: found."


async def through_messages(client: Any, schema: Any, *, stream: bool) -> Done:
    messages: list[Any] = [{"role": "user", "content": "Do it."}]
    calls: list[tuple[str, str]] = []
    thinking: list[str] = []
    used = [0, 0]
    request: dict[str, Any] = {
        "model": "claude-sonnet-5-5",
        "max_tokens": 1_000,
        "system": "You are an agent.",
        "tools": [{"name": "search", "description": "Finds.", "input_schema": SEARCH_SCHEMA}],
        "thinking": {"type": "adaptive"},
    }
    if schema:
        request["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    for _ in range(STEPS_MAX):
        if stream:
            async with client.messages.stream(**request, messages=messages) as events:
                reply = await events.get_final_message()
        else:
            reply = await client.messages.create(**request, messages=messages)
        usage = reply.usage
        used[0] += usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens
        used[1] += usage.output_tokens
        messages.append({"role": "assistant", "content": [block.to_dict() for block in reply.content]})
        thinking += [block.thinking for block in reply.content if block.type == "thinking"]
        wanted = [block for block in reply.content if block.type == "tool_use"]
        assert (reply.stop_reason == "tool_use") == bool(wanted)
        if not wanted:
            answer = "".join(block.text for block in reply.content if block.type == "text")
            return Done(answer, tuple(calls), tuple(thinking), *used)
        calls += [(block.name, json.dumps(block.input)) for block in wanted]
        results = [(block.id, result(block.name, json.dumps(block.input))) for block in wanted]
        content = [{"type": "tool_result", "tool_use_id": call, "content": text} for call, text in results]
        messages.append({"role": "user", "content": content})
    raise AssertionError("the job does not end")


async def through_responses(client: Any, schema: Any, *, stream: bool) -> Done:
    items: list[Any] = [{"role": "user", "content": "Do it."}]
    calls: list[tuple[str, str]] = []
    thinking: list[str] = []
    used = [0, 0]
    tool = {"type": "function", "name": "search", "description": "Finds.", "parameters": SEARCH_SCHEMA, "strict": False}
    request: dict[str, Any] = {
        "model": "gpt-6-sol",
        "instructions": "You are an agent.",
        "tools": [tool],
        "reasoning": {"effort": "low", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "store": False,
    }
    if schema:
        request["text"] = {"format": {"type": "json_schema", "name": "city", "schema": schema, "strict": True}}
    for _ in range(STEPS_MAX):
        if stream:
            async with client.responses.stream(**request, input=items) as events:
                reply = await events.get_final_response()
        else:
            reply = await client.responses.create(**request, input=items)
        used[0] += reply.usage.input_tokens
        used[1] += reply.usage.output_tokens
        items += [item.to_dict() for item in reply.output]
        for item in reply.output:
            if item.type == "reasoning":
                thinking.append("".join(part.text for part in (item.summary or item.content)))
        wanted = [item for item in reply.output if item.type == "function_call"]
        if not wanted:
            return Done(reply.output_text, tuple(calls), tuple(thinking), *used)
        for item in wanted:
            calls.append((item.name, json.dumps(json.loads(item.arguments))))
            said_back = result(item.name, item.arguments)
            items.append({"type": "function_call_output", "call_id": item.call_id, "output": said_back})
    raise AssertionError("the job does not end")


async def through_chat(client: Any, schema: Any, *, stream: bool) -> Done:
    messages: list[Any] = [{"role": "system", "content": "You are an agent."}, {"role": "user", "content": "Do it."}]
    calls: list[tuple[str, str]] = []
    thinking: list[str] = []
    used = [0, 0]
    function = {"name": "search", "description": "Finds.", "parameters": SEARCH_SCHEMA}
    request: dict[str, Any] = {
        "model": "local-chat",
        "tools": [{"type": "function", "function": function}],
        "reasoning_effort": "low",
    }
    if schema:
        form = {"name": "city", "schema": schema, "strict": True}
        request["response_format"] = {"type": "json_schema", "json_schema": form}
    for _ in range(STEPS_MAX):
        if stream:
            options = {"include_usage": True}
            async with client.chat.completions.stream(**request, messages=messages, stream_options=options) as events:
                reply = await events.get_final_completion()
        else:
            reply = await client.chat.completions.create(**request, messages=messages)
        used[0] += reply.usage.prompt_tokens
        used[1] += reply.usage.completion_tokens
        message = reply.choices[0].message
        thinking += [message.reasoning] if getattr(message, "reasoning", None) else []
        messages.append({"role": "assistant", "content": message.content})
        if not message.tool_calls:
            return Done(message.content, tuple(calls), tuple(thinking), *used)
        messages[-1]["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in message.tool_calls
        ]
        for call in message.tool_calls:
            calls.append((call.function.name, json.dumps(json.loads(call.function.arguments))))
            said_back = result(call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": said_back})
    raise AssertionError("the job does not end")
