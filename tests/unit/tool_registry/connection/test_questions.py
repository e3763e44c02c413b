"""Which call a question in the middle of a call is of, where its server does not say."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp_types import CallToolResult, ElicitRequestFormParams, ElicitResult, TextContent

from wayline.contracts.tools import InputAnswer
from wayline.tool_registry.connection.questions import STATE, CallQuestions, Questions
from wayline.tool_registry.errors import NotBegun

WITHIN_S = 10.0
ASKED = ElicitRequestFormParams(
    message="Which account?",
    requested_schema={"type": "object", "properties": {"account": {"type": "string"}, "day": {"default": "today"}}},
)
DONE = CallToolResult(content=[TextContent(text="done")])
CONTEXT: Any = None
"""No question is answered by it."""


async def question(questions: Questions) -> tuple[ElicitResult, CallQuestions]:
    """Ask once in a call, and return the answer with what the call has noted."""
    async with questions.during(None, within_s=WITHIN_S) as call:
        return await questions.hear(CONTEXT, ASKED), call


async def let_others_run() -> None:
    """Give every task that can go on its turn, several times."""
    for _ in range(10):
        await asyncio.sleep(0)


async def answer() -> InputAnswer:
    """Return a person's answer to the question."""
    _, call = await question(Questions())
    asked = call.open_question("nothing was done")
    [key] = asked.input_requests or {}
    return InputAnswer(answers={key: {"account": "DE12"}}, state=asked.request_state)


async def test_what_an_answer_leaves_out_has_its_default():
    questions, given = Questions(), await answer()

    async with questions.during(given, within_s=WITHIN_S):
        told = await questions.hear(CONTEXT, ASKED)

    assert (told.action, told.content) == ("accept", {"account": "DE12", "day": "today"})


@pytest.mark.parametrize("error", [TimeoutError, asyncio.CancelledError])
async def test_questions_after_a_call_that_was_given_up_are_declined(error: type[BaseException]):
    questions = Questions()
    with pytest.raises(error):
        async with questions.during(None, within_s=WITHIN_S):
            raise error

    told, call = await question(questions)

    assert told.action == "decline"
    noted = call.ended(DONE, hide=str)
    assert isinstance(noted, CallToolResult)
    assert "an earlier call was given up" in noted.content[-1].text  # type: ignore[union-attr]


async def test_a_question_while_no_call_runs_is_declined():
    assert (await Questions().hear(CONTEXT, ASKED)).action == "decline"


async def test_a_call_with_an_answer_runs_alone():
    questions, given, order = Questions(), await answer(), list[str]()
    may_end = asyncio.Event()

    async def run(name: str, with_answer: InputAnswer | None) -> None:
        async with questions.during(with_answer, within_s=WITHIN_S):
            order.append(f"{name} runs")
            await may_end.wait()
            await let_others_run()
            order.append(f"{name} ends")

    async with asyncio.TaskGroup() as group:
        for name, with_answer in (("first", None), ("answered", given), ("last", None)):
            group.create_task(run(name, with_answer))
        await let_others_run()
        assert order == ["first runs"]
        may_end.set()

    assert order == ["first runs", "first ends", "answered runs", "answered ends", "last runs", "last ends"]


async def test_an_answered_call_that_waits_too_long_has_not_begun():
    questions, given = Questions(), await answer()

    async with questions.during(None, within_s=WITHIN_S):
        with pytest.raises(NotBegun, match="other calls of the server took longer"):
            async with questions.during(given, within_s=0.01):
                pass

    # And it keeps nobody else waiting.
    assert (await question(questions))[0].action == "cancel"


async def test_a_state_that_a_server_makes_up_holds_no_answers():
    forged = InputAnswer(answers={}, state=f"{STATE}not JSON")

    async with Questions().during(forged, within_s=WITHIN_S) as call:
        assert call.answers == {}
