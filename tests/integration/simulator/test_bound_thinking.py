"""Thinking is bound to the prompt it was thought about: an edited history is refused, not only dearer."""

from __future__ import annotations

import pytest

from wayline.simulator import Say, turns

from .sdks import anthropic

TOOL = {"name": "search", "description": "Finds.", "input_schema": {"type": "object", "properties": {}}}
BOUND = "bound to a different conversation"


class Chat:
    """A first exchange with thinking and a call, and the request that follows it."""

    def __init__(self, providers, model: str) -> None:
        providers.simulator.script = turns(
            Say(text="Looking.", tools=(("search", {}),), thinking="I must look."), Say(text="Done.", thinking="Seen.")
        )
        self.client = providers.anthropic
        self.request = {
            "model": model,
            "max_tokens": 2_000,
            "system": "Be brief.",
            "tools": [TOOL],
            "thinking": {"type": "adaptive"},
        }

    async def begin(self) -> list[dict]:
        asked = [{"role": "user", "content": "What is it?"}]
        answer = await self.client.messages.create(**self.request, messages=asked)
        call = next(block.id for block in answer.content if block.type == "tool_use")
        return [
            *asked,
            {"role": "assistant", "content": [block.to_dict() for block in answer.content]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": "A thing."}]},
        ]

    async def go_on(self, messages, **changed):
        return await self.client.messages.create(**{**self.request, **changed}, messages=messages)


@pytest.mark.parametrize("model", ["claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5", "claude-fable-5-2"])
async def test_an_unchanged_history_is_accepted_and_cache_markers_are_no_change(providers, model):
    chat = Chat(providers, model)
    messages = await chat.begin()
    messages[0]["content"] = [{"type": "text", "text": "What is it?", "cache_control": {"type": "ephemeral"}}]

    assert (await chat.go_on(messages)).stop_reason == "end_turn"


@pytest.mark.parametrize("edit", ["message", "system", "tools", "thinking"])
async def test_an_edited_history_is_refused(providers, edit):
    chat = Chat(providers, "claude-sonnet-5-5")
    messages = await chat.begin()
    changed: dict = {}
    if edit == "message":
        messages[0]["content"] = "What is it"
    elif edit == "system":
        changed = {"system": "Be very brief."}
    elif edit == "tools":
        changed = {"tools": [TOOL, {**TOOL, "name": "find"}]}
    else:
        messages[1]["content"][0]["thinking"] = "I must not look."

    problem = "Invalid `signature`" if edit == "thinking" else BOUND
    with pytest.raises(anthropic.BadRequestError, match=problem) as refused:
        await chat.go_on(messages, **changed)
    assert refused.value.body["error"]["type"] == "invalid_request_error"


async def test_an_edit_after_the_last_thinking_is_free(providers):
    chat = Chat(providers, "claude-sonnet-5-5")
    messages = await chat.begin()
    messages[2]["content"][0]["content"] = "Another thing."

    assert (await chat.go_on(messages)).stop_reason == "end_turn"


async def test_an_older_model_s_thinking_is_not_bound(providers):
    chat = Chat(providers, "claude-haiku-4-5")
    messages = await chat.begin()

    assert (await chat.go_on(messages, system="Be very brief.")).stop_reason == "end_turn"


async def test_another_model_s_thinking_is_dropped_in_silence(providers):
    chat = Chat(providers, "claude-sonnet-5-5")
    messages = await chat.begin()
    messages[0]["content"] = "Edited, which would be refused if the thinking were read."

    escalated = await chat.go_on(messages, model="claude-opus-5-5")
    messages[1]["content"] = [block for block in messages[1]["content"] if block["type"] != "thinking"]
    without = await chat.go_on(messages, model="claude-opus-5-5")

    assert escalated.usage.input_tokens == without.usage.input_tokens


async def test_thinking_that_is_not_shown_comes_back_by_its_signature(providers):
    chat = Chat(providers, "claude-sonnet-5-5")
    chat.request["thinking"] = {"type": "adaptive", "display": "omitted"}
    messages = await chat.begin()

    assert messages[1]["content"][0]["thinking"] == ""
    assert (await chat.go_on(messages)).stop_reason == "end_turn"
    with pytest.raises(anthropic.BadRequestError, match=BOUND):
        await chat.go_on(messages, system="Be very brief.")


async def test_a_forged_signature_is_refused(providers):
    chat = Chat(providers, "claude-sonnet-5-5")
    messages = await chat.begin()
    messages[1]["content"][0]["signature"] = "bm9uc2Vuc2U="

    with pytest.raises(anthropic.BadRequestError, match="Invalid `signature` in `thinking` block"):
        await chat.go_on(messages)
