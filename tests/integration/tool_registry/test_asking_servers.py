"""A server of an older MCP asks in the middle of a call: it is cancelled there, and called again with the answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from wayline.contracts.tools import CallTool, InputAnswer, ToolReply
from wayline.testkit import until

from ..older_server import Act, Ask, OlderServer, ServerError
from .conftest import RegistryPlatform

TEXT = {"type": "string"}


async def book(ask: Ask) -> str:
    """Book from the account that a person names."""
    answer = await ask("Which account?", {"account": TEXT})
    return f"booked from {answer['content']['account']}" if answer["action"] == "accept" else "nothing was booked"


@asynccontextmanager
async def connected(platform: RegistryPlatform, act: Act, **more: Any) -> AsyncIterator[OlderServer]:
    async with OlderServer(act).serving() as server:
        await platform.registry({"name": "old", "url": server.url, **more})
        await until(platform.hears, why="its tools are listed")
        yield server


def with_answer(platform: RegistryPlatform, before: ToolReply, n: int, *, job: str = "j1", **content: Any) -> CallTool:
    """Return the call that follows a question, as the executor makes it: under the next key, with the answer."""
    assert before.input is not None
    ask = platform.ask("old__act", job=job)
    answer = InputAnswer(answers={before.input.keys[0]: content}, state=before.input.state)
    return ask.model_copy(update={"key": f"{ask.key}/{n}", "answer": answer})


@pytest.mark.parametrize("effect", ["once", "read"])
async def test_the_answer_to_a_question_goes_with_the_next_call(platform: RegistryPlatform, effect: str):
    async with connected(platform, book, effects={"act": effect}) as server:
        asked = await platform.call(platform.ask("old__act"))
        assert asked.input is not None
        assert asked.input.message == "Which account?"
        assert asked.input.input_schema["required"] == ["account"]
        assert asked.input.after_cancel == "nothing was booked"
        assert [one["action"] for one in server.answers] == ["cancel"]

        reply = await platform.call(with_answer(platform, asked, 2, account="DE12"))

    assert (reply.status, reply.content) == ("success", "booked from DE12")
    assert server.calls == 2


async def test_the_question_of_a_once_tool_is_kept_in_the_ledger(platform: RegistryPlatform):
    async with connected(platform, book, effects={"act": "once"}) as server:
        ask = platform.ask("old__act")
        first = await platform.call(ask)

        again = await platform.call(ask)

    assert (again.input, again.repeated, server.calls) == (first.input, True, 1)


async def test_answers_of_earlier_questions_go_with_later_ones(platform: RegistryPlatform):
    async def act(ask: Ask) -> str:
        account = await ask("Which account?", {"account": TEXT})
        if account["action"] != "accept":
            return "no account"
        day = await ask("Which day?", {"day": TEXT})
        return f"{account['content']['account']} on {day.get('content', {}).get('day', 'no day')}"

    async with connected(platform, act):
        first = await platform.call(platform.ask("old__act"))
        second = await platform.call(with_answer(platform, first, 2, account="DE12"))
        assert second.input is not None
        assert (second.input.message, second.input.after_cancel) == ("Which day?", "DE12 on no day")

        reply = await platform.call(with_answer(platform, second, 3, day="Monday"))

    assert reply.content == "DE12 on Monday"


async def test_one_answer_is_given_once_where_the_same_is_asked_again(platform: RegistryPlatform):
    async def act(ask: Ask) -> str:
        answers = [await ask("Delete the next file?", {"sure": {"type": "boolean"}}) for _ in range(2)]
        return " ".join(one["action"] for one in answers)

    async with connected(platform, act):
        first = await platform.call(platform.ask("old__act"))

        second = await platform.call(with_answer(platform, first, 2, sure=True))

    assert second.input is not None and second.input.after_cancel == "accept cancel"


async def test_other_words_are_another_question(platform: RegistryPlatform):
    seats = iter([3, 2])

    async def act(ask: Ask) -> str:
        return (await ask(f"{next(seats)} seats are left. Go on?", {"sure": {"type": "boolean"}}))["action"]

    async with connected(platform, act):
        first = await platform.call(platform.ask("old__act"))

        second = await platform.call(with_answer(platform, first, 2, sure=True))

    assert second.input is not None and second.input.message == "2 seats are left. Go on?"


async def test_a_server_that_fails_its_cancelled_call_has_asked(platform: RegistryPlatform):
    async def act(ask: Ask) -> str:
        if (await ask("Which account?", {"account": TEXT}))["action"] != "accept":
            raise ServerError("no account was given")
        return "done"

    async with connected(platform, act, effects={"act": "once"}):
        asked = await platform.call(platform.ask("old__act"))
        assert asked.input is not None and asked.input.after_cancel == "no account was given"

        reply = await platform.call(with_answer(platform, asked, 2, account="DE12"))

    assert reply.content == "done"


async def test_a_question_for_a_secret_is_declined_and_told(platform: RegistryPlatform):
    async def act(ask: Ask) -> str:
        return (await ask("Your password?", {"password": TEXT}))["action"]

    async with connected(platform, act):
        reply = await platform.call(platform.ask("old__act"))

    content, note = reply.content.split("\n")
    assert (reply.status, content) == ("success", "decline")
    assert "asked a person: 'Your password?'" in note and "the secret 'password'" in note


async def test_a_question_beside_another_call_is_declined(platform: RegistryPlatform):
    both = asyncio.Barrier(2)

    async def act(ask: Ask) -> str:
        await both.wait()
        action = (await ask("Which account?", {"account": TEXT}))["action"]
        await both.wait()
        return action

    async with connected(platform, act):
        replies = await asyncio.gather(*(platform.call(platform.ask("old__act", job=f"j{n}")) for n in range(2)))

    assert [reply.content.split("\n")[0] for reply in replies] == ["decline", "decline"]
    assert all("nothing in its version of MCP says which of them asks" in reply.content for reply in replies)
    assert all(reply.input is None for reply in replies)


async def test_an_answer_is_given_to_its_own_call_alone(platform: RegistryPlatform):
    may_ask = asyncio.Event()

    async def act(ask: Ask) -> str:
        if server.calls == 2:
            await may_ask.wait()
        return await book(ask)

    async with connected(platform, act) as server:
        first = await platform.call(platform.ask("old__act", job="mine"))
        other = asyncio.create_task(platform.call(platform.ask("old__act", job="other")))
        await until(lambda: server.calls == 2, why="the other call runs")
        mine = asyncio.create_task(platform.call(with_answer(platform, first, 2, job="mine", account="DE12")))
        # It waits for the other call, which is asked the same.
        may_ask.set()
        theirs, ours = await asyncio.gather(other, mine)

    assert theirs.input is not None and theirs.input.after_cancel == "nothing was booked"
    assert ours.content == "booked from DE12"
    assert [one["action"] for one in server.answers] == ["cancel", "cancel", "accept"]


async def test_a_secret_that_a_question_repeats_is_hidden(platform: RegistryPlatform):
    async def act(ask: Ask) -> str:
        return f"{(await ask('Is key-123456 yours?', {'yes': {'type': 'boolean'}}))['action']} of key-123456"

    async with connected(platform, act, headers={"X-Key": "key-123456"}):
        reply = await platform.call(platform.ask("old__act"))

    assert reply.input is not None
    assert (reply.input.message, reply.input.after_cancel) == ("Is *** yours?", "cancel of ***")
