"""A cancel really stops what runs, and the job says what became of it."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from wayline.contracts.events import ModelFailed
from wayline.executor.adapters.tool_registry import ToolRegistry
from wayline.executor.run_tickets import Lane
from wayline.journal import JobLog
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.testkit import Platform, until

from .conftest import chatting, with_tools
from .stage import Stage, open_stage

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(module_platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with open_stage(module_platform, tmp_path_factory.mktemp("effects")) as stage:
        yield stage


def slow_first_result(monkeypatch) -> tuple[asyncio.Event, asyncio.Event]:
    """The append of the first tool's result, stored, says so with one event and returns only at the other."""
    appended, go_on = asyncio.Event(), asyncio.Event()
    append = JobLog.append

    async def slowly(self, events, after, **options):
        head = await append(self, events, after, **options)
        if events[-1].type == "tool.completed" and not appended.is_set():
            appended.set()
            await go_on.wait()
        return head

    monkeypatch.setattr(JobLog, "append", slowly)
    return appended, go_on


async def test_a_cancel_stops_a_running_model_stream(stage: Stage):
    platform = await stage.play(lambda _: Say(text="one two", hold=asyncio.Event()))
    await platform.submit("j1", model="chat/m")
    await until(lambda: bool(stage.chat.calls), why="the model was asked")

    await platform.signal("j1", type="cancel", reason="enough", by="ann")

    cancelled = await platform.wait_for("j1")
    assert cancelled.status == "cancelled"
    await until(lambda: stage.chat.aborted == 1, why="the provider's stream was cut")
    events = await platform.events("j1")
    assert [event.type for event in events[-3:]] == ["job.cancel_requested", "model.failed", "job.cancelled"]
    [failed] = await platform.events_of("j1", ModelFailed)
    assert failed.attempt_id == stage.chat.calls[0][0]
    await platform.wait_until_empty("RUN")


@pytest.mark.asyncio(loop_scope="function")
async def test_a_cancel_stops_a_running_tool_and_its_outcome_is_recorded(platform, effects):
    effects.delay_ms = 60_000
    await effects.start()
    async with ChatServer(turns(Say(tools=(("effects__put_idempotent", {}),)), Say(text="done"))) as chat:
        await platform.start(
            "router", "executor", "tool_registry", executor=chatting(chat), tool_registry=with_tools(effects.settings())
        )
        await platform.submit("j1", model="chat/m")
        await platform.wait_until("j1", lambda job: any(call.key for call in job.tools.calls), "the tool was asked")

        await platform.signal("j1", type="cancel")

        assert (await platform.wait_for("j1")).status == "cancelled"
        events = await platform.events("j1")
        [completed] = [event for event in events if event.type == "tool.completed"]
        assert (completed.status, completed.error.code) == ("failed", "cancelled")
        assert effects.calls() == []


@pytest.mark.asyncio(loop_scope="function")
async def test_a_job_cancelled_before_anybody_claimed_it_never_calls_its_model(platform):
    async with ChatServer(lambda _: Say(text="never")) as chat:
        await platform.start("router", "tool_registry")
        await platform.submit("j1", model="chat/m")
        await platform.wait_until("j1", lambda job: job.routing.route is not None, "the job is routed")
        await platform.signal("j1", type="cancel")

        await platform.start("executor", executor=chatting(chat))

        assert (await platform.wait_for("j1")).status == "cancelled"
        assert chat.calls == []


async def test_a_cancel_after_the_end_changes_nothing(stage: Stage):
    platform = await stage.play(lambda _: Say(text="done"))
    await platform.submit("j1", model="chat/m")
    await platform.wait_for("j1")
    before = await platform.events("j1")

    await platform.signal("j1", type="cancel")
    await platform.submit("j2", model="chat/m")
    await platform.wait_for("j2")

    assert await platform.events("j1") == before


@pytest.mark.asyncio(loop_scope="function")
async def test_a_malformed_signal_is_put_aside_and_the_job_goes_on(platform):
    async with ChatServer(lambda _: Say(text="done")) as chat:
        await platform.start("router", "executor", "tool_registry", executor=chatting(chat))
        await platform.bus.js.publish("signals.default.j1", b"nonsense")

        await platform.submit("j1", model="chat/m")

        assert (await platform.wait_for("j1")).status == "completed"

        async def one_letter() -> bool:
            return [letter["Wayline-Dead-Stream"] for letter in await platform.dead_letters()] == ["SIGNALS"]

        await until(one_letter, why="the malformed signal is a dead letter")


@pytest.mark.asyncio(loop_scope="function")
async def test_a_signal_heard_during_an_append_is_in_the_next_record(platform, effects, monkeypatch):
    """Two calls side by side: the quick one's result is being appended when the signal comes."""
    effects.delay_ms = 1_000
    await effects.start()
    calls = Say(tools=(("get_current_time", {}), ("effects__look_read", {})))
    appended, go_on = slow_first_result(monkeypatch)
    async with ChatServer(turns(calls, Say(text="done"))) as chat:
        await platform.start(
            "router", "executor", "tool_registry", executor=chatting(chat), tool_registry=with_tools(effects.settings())
        )
        await platform.submit("j1", model="chat/m")
        await asyncio.wait_for(appended.wait(), 10)

        await platform.signal("j1", type="budget", budget_usd="1")
        lane = next(part for part in platform.services["executor"].parts if isinstance(part, Lane))
        await until(lambda: lane._by_job["default", "j1"].writer.signals_seen > 0, why="the signal was heard")
        go_on.set()

        assert (await platform.wait_for("j1")).status == "completed"
        events = await platform.events("j1")
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        types = [event.type for event in events]
        assert types.count("budget.raised") == 1
        assert types.count("job.claimed") == 1, "its holder lost the event, and another had to find the signal again"


@pytest.mark.asyncio(loop_scope="function")
async def test_a_tool_that_outlives_its_jobs_deadline_is_stopped(platform, effects):
    effects.delay_ms = 60_000
    await effects.start()
    async with ChatServer(turns(Say(text="one moment", tools=(("effects__put_idempotent", {}),)))) as chat:
        await platform.start(
            "router", "executor", "tool_registry", executor=chatting(chat), tool_registry=with_tools(effects.settings())
        )

        await platform.submit("j1", model="chat/m", max_seconds=1.5)

        ended = await platform.wait_for("j1")
        assert (ended.status, ended.partial, ended.answer) == ("completed", True, "one moment")
        [completed] = [event for event in await platform.events("j1") if event.type == "tool.completed"]
        assert completed.error.code == "timeout"


@pytest.mark.asyncio(loop_scope="function")
async def test_an_unlogged_result_from_before_the_cancel_is_kept(platform, effects, monkeypatch):
    """Two calls side by side: the second one's result comes while the first one's is being appended."""
    effects.delay_ms = 100
    await effects.start()
    calls = Say(tools=(("get_current_time", {}), ("effects__look_read", {})))
    (appended, go_on), answered, call = slow_first_result(monkeypatch), list[str](), ToolRegistry.call

    async def told(self, job, wanted, **options):
        reply = await call(self, job, wanted, **options)
        answered.append(wanted.wanted.call)
        return reply

    monkeypatch.setattr(ToolRegistry, "call", told)
    async with ChatServer(turns(calls, Say(text="never"))) as chat:
        await platform.start(
            "router", "executor", "tool_registry", executor=chatting(chat), tool_registry=with_tools(effects.settings())
        )
        await platform.submit("j1", model="chat/m")
        await asyncio.wait_for(appended.wait(), 10)
        await until(lambda: answered == ["1", "2"], why="both tools have answered")

        await platform.signal("j1", type="cancel")
        lane = next(part for part in platform.services["executor"].parts if isinstance(part, Lane))
        await until(
            lambda: lane._by_job["default", "j1"].writer.job.life.cancel is not None, why="the cancel was heard"
        )
        go_on.set()

        assert (await platform.wait_for("j1")).status == "cancelled"
        completed = [event for event in await platform.events("j1") if event.type == "tool.completed"]
        assert [(event.call, event.status) for event in completed] == [("1", "success"), ("2", "success")]
