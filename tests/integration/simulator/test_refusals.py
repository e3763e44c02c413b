"""What the real APIs reject is rejected here, in their shapes; it costs nothing and is on the bill all the same."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from .sdks import anthropic, openai

ASK = [{"role": "user", "content": "hi"}]
TOOL = {"name": "search", "description": "", "input_schema": {"type": "object", "properties": {}}}
CALL = {"type": "tool_use", "id": "t1", "name": "search", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
OPEN = {"type": "object", "properties": {"a": {"type": "string"}}}
NOTE = {"role": "system", "content": "note"}


def conversation(*blocks: dict) -> list[dict]:
    """A conversation whose messages alternate, from the user on."""
    return [
        {"role": ("user", "assistant")[n % 2], "content": list(b) if isinstance(b, tuple) else b}
        for n, b in enumerate(blocks)
    ]


def form(schema: Any) -> dict:
    return {"format": {"type": "json_schema", "schema": schema}}


REFUSED_MESSAGES: dict[str, tuple[dict[str, Any], str]] = {
    "temperature": ({"temperature": 0.7}, "temperature: Extra inputs are not permitted"),
    "top_p": ({"top_p": 0.7}, "top_p: Extra inputs"),
    "top_k": ({"top_k": 7}, "top_k: Extra inputs"),
    "no output limit": ({"max_tokens": None}, "max_tokens: Field required"),
    "too much output": ({"max_tokens": 128_001}, "maximum allowed number of output tokens"),
    "no messages": ({"messages": []}, "at least one message"),
    "an assistant first": ({"messages": conversation("hi", "ho")[::-1]}, "first message must use"),
    "an unknown role": ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0.role"),
    "an empty text": ({"messages": conversation("")}, "must be non-empty"),
    "a prefill": ({"messages": conversation("hi", "I")}, "must end with a user message"),
    "a call without a result": (
        {"messages": conversation("hi", (CALL,), "ho")},
        "without `tool_result` blocks immediately after",
    ),
    "a call at the end": (
        {"model": "claude-haiku-4-5", "messages": conversation("hi", (CALL,))},
        "without `tool_result`",
    ),
    "a result without a call": ({"messages": conversation((RESULT,))}, "unexpected `tool_use_id`"),
    "a result that comes late": (
        {"messages": conversation("hi", (CALL,), ({"type": "text", "text": "ho"}, RESULT))},
        "without `tool_result` blocks immediately after",
    ),
    "a result given twice": ({"messages": conversation("hi", (CALL,), (RESULT, RESULT))}, "unexpected `tool_use_id`"),
    "a call id used twice": (
        {"messages": conversation("hi", (CALL,), (RESULT,), (CALL,), (RESULT,))},
        "must be unique",
    ),
    "a system message first": ({"messages": [NOTE, *ASK]}, "must follow a user message"),
    "two system messages": ({"messages": [*ASK, NOTE, NOTE]}, "last or stand before an assistant"),
    "a system message before a user's": ({"messages": [*ASK, NOTE, *ASK]}, "last or stand before an assistant"),
    "a system message to an old model": ({"model": "claude-haiku-4-5", "messages": [*ASK, NOTE]}, "not supported"),
    "a system message between call and result": (
        {"messages": [*conversation("hi", (CALL,)), NOTE, *conversation((RESULT,))]},
        "must follow a user message",
    ),
    "a bad tool name": ({"tools": [{**TOOL, "name": "a.b"}]}, "should match pattern"),
    "a tool twice": ({"tools": [TOOL, TOOL]}, "must be unique"),
    "a deferred tool with a marker": (
        {"tools": [TOOL, {**TOOL, "name": "b", "defer_loading": True, "cache_control": {"type": "ephemeral"}}]},
        "tool 'b' cannot have both defer_loading=true and cache_control set",
    ),
    "only deferred tools": (
        {"tools": [{**TOOL, "defer_loading": True}]},
        "at least one tool must have defer_loading=false",
    ),
    "an unknown tool found": (
        {
            "tools": [TOOL],
            "messages": conversation(
                "hi", (CALL,), ({**RESULT, "content": [{"type": "tool_reference", "tool_name": "x"}]},)
            ),
        },
        "not found in available tools",
    ),
    "an open schema": ({"output_config": form(OPEN)}, "'additionalProperties' must be explicitly set to false"),
    "no thinking where there must be": (
        {"model": "claude-opus-5-5", "thinking": {"type": "disabled"}},
        "does not support disabling",
    ),
    "too little thinking": ({"thinking": {"type": "enabled", "budget_tokens": 1_000}}, "greater than or equal to 1024"),
    "more thinking than output": (
        {"thinking": {"type": "enabled", "budget_tokens": 2_000}},
        "must be greater than `thinking.budget_tokens`",
    ),
    "effort of a model without": (
        {"model": "claude-haiku-4-5", "output_config": {"effort": "low"}},
        "does not support the effort",
    ),
    "too long a prompt": ({"model": "claude-haiku-4-5", "messages": conversation("x" * 900_000)}, "prompt is too long"),
    "a mark on nothing": (
        {"messages": conversation(({"type": "text", "text": "", "cache_control": {"type": "ephemeral"}},))},
        "cannot be set for empty text",
    ),
    "a strange lifetime": (
        {
            "messages": conversation(
                ({"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "2h"}},)
            )
        },
        "'5m' or '1h'",
    ),
    "nonsense": ({"tools": "none"}, "cannot be read"),
}


@pytest.mark.parametrize("case", REFUSED_MESSAGES)
async def test_messages_refuses(providers, case):
    changed, message = REFUSED_MESSAGES[case]
    request = {"model": "claude-sonnet-5-5", "max_tokens": 1_500, "messages": ASK, **changed}
    request = {name: value for name, value in request.items() if value is not None}

    with pytest.raises(anthropic.BadRequestError) as refused:
        await providers.anthropic.post("/v1/messages", body=request, cast_to=object)

    error = refused.value.body
    assert (error["type"], error["error"]["type"]) == ("error", "invalid_request_error")
    assert message.casefold() in error["error"]["message"].casefold()
    assert (providers.charge.outcome, providers.charge.usd, providers.charge.status) == ("refused", 0, 400)
    assert not providers.simulator.requests


@pytest.mark.parametrize(
    ("model", "taken"),
    [
        ("claude-opus-5-5", False),
        ("claude-sonnet-5-5", False),
        ("claude-fable-5-2", False),
        ("claude-haiku-5-5", True),
        ("claude-haiku-4-5", True),
    ],
)
@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "search"}])
async def test_only_some_models_can_be_made_to_call_a_tool(providers, model, taken, choice):
    request = {"model": model, "max_tokens": 99, "messages": ASK, "tools": [TOOL], "tool_choice": choice}
    if taken:
        assert (await providers.anthropic.messages.create(**request)).content
        return
    with pytest.raises(anthropic.BadRequestError, match="tool_choice"):
        await providers.anthropic.messages.create(**request)


async def test_a_system_message_may_follow_the_user_s(providers):
    for messages in ([*ASK, NOTE], [*ASK, NOTE, *conversation("x", "ho")[1:], *ASK]):
        said_back = await providers.anthropic.messages.create(
            model="claude-sonnet-5-5", max_tokens=9, messages=messages
        )
        assert said_back.stop_reason == "end_turn"


async def test_an_unknown_model_is_not_found(providers):
    with pytest.raises(anthropic.NotFoundError) as one:
        await providers.anthropic.messages.create(model="claude-none", max_tokens=9, messages=ASK)
    with pytest.raises(openai.NotFoundError) as two:
        await providers.openai.chat.completions.create(model="gpt-none", messages=ASK)
    with pytest.raises(openai.BadRequestError) as three:
        await providers.openai.responses.create(model="gpt-none", input="hi")
    with pytest.raises(openai.NotFoundError):
        await providers.openai.embeddings.create(model="gpt-6-sol", input="hi")
    with pytest.raises(anthropic.NotFoundError):
        await providers.anthropic.messages.create(model="gpt-6-sol", max_tokens=9, messages=ASK)

    assert one.value.body["error"] == {"type": "not_found_error", "message": "model: claude-none"}
    assert two.value.code == three.value.code == "model_not_found"


async def test_without_a_key_only_a_local_model_answers(providers):
    async with aiohttp.ClientSession() as session:
        for path, model, status in (
            ("/v1/messages", "claude-sonnet-5-5", 401),
            ("/v1/chat/completions", "gpt-6-sol", 401),
            ("/v1/chat/completions", "local-chat", 200),
        ):
            body = {"model": model, "messages": ASK, "max_tokens": 9}
            async with session.post(providers.simulator.url + path, json=body) as response:
                assert response.status == status


FUNCTION = {"type": "function", "name": "search", "parameters": {"type": "object", "properties": {}}, "strict": False}
CALLED = {"type": "function_call", "call_id": "c1", "name": "search", "arguments": "{}"}
ANSWERED = {"type": "function_call_output", "call_id": "c1", "output": "x"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": []}

REFUSED_RESPONSES: dict[str, tuple[dict[str, Any], str]] = {
    "a call without an output": ({"input": [*ASK, CALLED]}, "No tool output found for function call c1"),
    "an output without a call": ({"input": [*ASK, ANSWERED]}, "No tool call found"),
    "an output before its call": ({"input": [*ASK, ANSWERED, CALLED]}, "No tool call found"),
    "reasoning that led to nothing": ({"input": [*ASK, THOUGHT]}, "without its required following item"),
    "reasoning before the user": ({"input": [THOUGHT, *ASK]}, "without its required following item"),
    "someone else's reasoning": (
        {"input": [*ASK, {**THOUGHT, "encrypted_content": "bm8="}, CALLED, ANSWERED]},
        "could not be verified",
    ),
    "an unknown role": ({"input": [{"role": "tool", "content": "x"}]}, "Invalid value: 'tool'"),
    "a temperature": ({"temperature": 0.7}, "'temperature' is not supported"),
    "a tiny output limit": ({"max_output_tokens": 15}, "below minimum value"),
    "too much output": ({"max_output_tokens": 128_001}, "too large"),
    "an unknown parameter": ({"max_tokens": 99}, "Unknown parameter: 'max_tokens'"),
    "an earlier response": ({"previous_response_id": "resp_1"}, "not found"),
    "a bad tool name": ({"tools": [{**FUNCTION, "name": "a.b"}]}, "does not match pattern"),
    "a long cache key": ({"prompt_cache_key": "k" * 65}, "maximum length 64"),
    "an open strict tool": ({"tools": [{**FUNCTION, "parameters": OPEN, "strict": True}]}, "additionalProperties"),
    "an optional strict field": (
        {
            "text": {
                "format": {
                    "type": "json_schema",
                    "name": "n",
                    "strict": True,
                    "schema": {**OPEN, "additionalProperties": False},
                }
            }
        },
        "every key in properties",
    ),
    "a tool that is not there": (
        {"tool_choice": {"type": "function", "name": "find"}, "tools": [FUNCTION]},
        "not found",
    ),
    "too long a prompt": ({"input": "x" * 4_100_000}, "exceeds the context window"),
}


@pytest.mark.parametrize("case", REFUSED_RESPONSES)
async def test_responses_refuses(providers, case):
    changed, message = REFUSED_RESPONSES[case]

    with pytest.raises(openai.BadRequestError) as refused:
        body = {"model": "gpt-6-sol", "input": ASK, **changed}
        await providers.openai.post("/responses", body=body, cast_to=object)

    assert message in refused.value.body["message"]
    assert set(refused.value.body) == {"message", "type", "param", "code"}
    assert (providers.charge.outcome, providers.charge.usd) == ("refused", 0)


CHAT_TOOL = {"type": "function", "function": {"name": "search", "parameters": {"type": "object", "properties": {}}}}
CHAT_CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}],
}
CHAT_RESULT = {"role": "tool", "tool_call_id": "c1", "content": "x"}

REFUSED_CHAT: dict[str, tuple[dict[str, Any], str]] = {
    "function tools of a reasoning model": ({"tools": [CHAT_TOOL]}, "use /v1/responses instead"),
    "the old output limit": ({"max_tokens": 9}, "Use 'max_completion_tokens' instead"),
    "a temperature": ({"temperature": 0.7}, "'temperature' is not supported"),
    "a call without a result": ({"messages": [*ASK, CHAT_CALL, *ASK]}, "must be followed by tool messages"),
    "a call at the end": ({"messages": [*ASK, CHAT_CALL]}, "must be followed by tool messages"),
    "a result without a call": ({"messages": [*ASK, CHAT_RESULT]}, "must be a response to a preceding message"),
    "an unknown role": ({"messages": [{"role": "note", "content": "x"}]}, "Invalid value: 'note'"),
    "no messages": ({"messages": []}, "'messages'"),
    "an open strict schema": (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": OPEN}}},
        "additionalProperties",
    ),
}


@pytest.mark.parametrize("case", REFUSED_CHAT)
async def test_chat_completions_refuses(providers, case):
    changed, message = REFUSED_CHAT[case]

    with pytest.raises(openai.BadRequestError) as refused:
        body = {"model": "gpt-6-sol", "messages": ASK, **changed}
        await providers.openai.post("/chat/completions", body=body, cast_to=object)

    assert message in refused.value.body["message"]


async def test_chat_completions_takes_function_tools_without_reasoning_and_from_local_models(providers):
    for model, more in (
        ("gpt-6-sol", {"reasoning_effort": "none", "temperature": 0.7}),
        ("local-chat", {"max_tokens": 9}),
    ):
        said_back = await providers.openai.chat.completions.create(model=model, messages=ASK, tools=[CHAT_TOOL], **more)
        assert said_back.choices[0].finish_reason == "tool_calls"


@pytest.mark.parametrize(
    "changed", [{"input": []}, {"input": ""}, {"dimensions": 9_999}, {"encoding_format": "hex"}, {"input": ["a", ""]}]
)
async def test_embeddings_refuses(providers, changed):
    with pytest.raises(openai.BadRequestError):
        body = {"model": "text-embedding-3-small", "input": "a", **changed}
        await providers.openai.post("/embeddings", body=body, cast_to=object)
