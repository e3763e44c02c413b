"""A job ends at its limits with what it has, or says which limit it was."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from wayline.contracts import events as e
from wayline.simulator.chat_server import Say
from wayline.testkit import Platform

from .stage import Stage, open_stage

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


def ask_the_time(_) -> Say:
    return Say(text="still looking", tools=(("get_current_time", {}),))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(module_platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with open_stage(module_platform, tmp_path_factory.mktemp("effects"), services=("retrieval",)) as stage:
        yield stage


async def test_at_its_step_limit_a_job_answers_with_what_it_has(stage: Stage):
    platform = await stage.play(ask_the_time)
    await platform.submit("j1", model="chat/m", max_steps=2)

    ended = await platform.wait_for("j1")
    assert (ended.status, ended.partial, ended.answer, ended.steps) == ("completed", True, "still looking", 2)
    assert ended.reason == "the job's 2 steps are used up"
    assert len(stage.chat.calls) == 2


async def test_a_loop_of_identical_calls_ends_with_a_partial_answer(stage: Stage):
    search = Say(text="searching", tools=(("search_knowledge", {"query": "the answer"}),))
    platform = await stage.play(lambda _: search)
    await platform.submit("j1", model="chat/m", max_steps=9)

    ended = await platform.wait_for("j1")
    assert (ended.status, ended.partial, ended.answer, ended.steps) == ("completed", True, "searching", 5)
    assert ended.reason is not None and "loop: it called search_knowledge 4 times" in ended.reason
    results = await platform.events_of("j1", e.ToolCompleted)
    assert [event.repeat_of for event in results] == [None, None, "1/1", "1/1"]
    assert results[2].content.startswith(results[0].content) and "was not run again" in results[2].content


async def test_an_answer_before_its_required_tools_is_sent_back(stage: Stage):
    script = iter([Say(text="no need"), Say(tools=(("get_current_time", {}),)), Say(text="it is late")])
    platform = await stage.play(lambda _: next(script))
    await platform.submit("j1", model="chat/m", required_tools=["get_current_time"])

    ended = await platform.wait_for("j1")
    assert (ended.status, ended.answer, ended.reason) == ("completed", "it is late", None)
    notes = [event.note for event in await platform.events_of("j1", e.ContextInjected)]
    told = [note.text for note in notes if note.label == "CORRECTION"]
    assert len(told) == 1 and "get_current_time" in told[0]


async def test_what_a_model_wrote_until_the_deadline_is_a_partial_answer(stage: Stage):
    platform = await stage.play(lambda _: Say(text="one two", hold=asyncio.Event()))
    await platform.submit("j1", model="chat/m", max_seconds=3)

    ended = await platform.wait_for("j1")
    assert (ended.status, ended.partial, (ended.answer or "").strip()) == ("completed", True, "one")
    assert ended.reason == "the job's 3 s are over"
    [completed] = await platform.events_of("j1", e.ModelCompleted)
    assert completed.cost_usd is None and completed.unsettled is not None, "nobody knows what it cost"


async def test_a_failing_provider_is_retried_with_a_new_attempt_id(stage: Stage):
    script = iter([Say(status=500), Say(text="half", cut=True), Say(text="well then")])
    platform = await stage.play(lambda _: next(script))
    await platform.submit("j1", model="chat/m")

    assert (await platform.wait_for("j1")).answer == "well then"
    assert [attempt for attempt, _ in stage.chat.calls] == [f"{platform.tenant}/j1/1/m{n}" for n in (1, 2, 3)]
    failed = await platform.events_of("j1", e.ModelFailed)
    assert [(event.error.code, event.retryable) for event in failed] == [
        ("server_error", True),
        ("stream_cut", True),
    ]


async def test_a_refusal_by_the_provider_is_not_tried_again(stage: Stage):
    platform = await stage.play(lambda _: Say(status=400))
    await platform.submit("j1", model="chat/m")

    ended = await platform.wait_for("j1")
    assert (ended.status, ended.error and ended.error.code, len(stage.chat.calls)) == ("failed", "invalid_request", 1)


async def test_a_job_that_requires_a_missing_tool_says_which(stage: Stage):
    platform = await stage.play(ask_the_time)
    await platform.submit("j1", required_tools=["get_current_time", "teleport"])

    ended = await platform.wait_for("j1")
    assert (ended.status, ended.error and ended.error.code) == ("failed", "missing_tools")
    assert ended.error is not None
    assert "teleport" in ended.error.message and "get_current_time" not in ended.error.message


async def test_an_unconfigured_provider_is_refused_with_the_configured_ones(stage: Stage):
    platform = await stage.play(ask_the_time)
    await platform.submit("j1", model="acme/large")

    ended = await platform.wait_for("j1")
    assert (ended.status, ended.error and ended.error.code) == ("failed", "unknown_provider")
    assert ended.error is not None and "offline" in ended.error.message
