"""Jobs over the bus: submitted, followed from their beginning, awaited; with a real bus and real services."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from secrets import token_hex
from typing import Any

import pytest
import pytest_asyncio
from opentelemetry.sdk.trace import TracerProvider

from wayline.contracts import events as e
from wayline.contracts.agents import Agent, AgentConfig, PutAgent
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.journal import JobLog
from wayline.sdk import Conflict, InvalidMessage, Jobs, JobTimeout, JobView, JobWaits, Unavailable, bus_broker, jobs
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.testkit import Platform
from wayline.tracing.handlers import job_events

pytestmark = [pytest.mark.asyncio(loop_scope="module")]
alone = pytest.mark.asyncio(loop_scope="function")


@asynccontextmanager
async def submitting(platform: Platform) -> AsyncIterator[Jobs]:
    """Start services, and submit to them without credentials, for the tenant `default`."""
    await platform.start("router", "executor", "tool_registry", "tracing")
    broker = bus_broker(platform.nats.url)
    await broker.start()
    yield Jobs(broker)
    await broker.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def submitter(module_platform: Platform) -> AsyncIterator[Jobs]:
    async with submitting(module_platform) as submitter:
        yield submitter


@pytest.fixture
async def own_submitter(platform: Platform) -> AsyncIterator[Jobs]:
    """Submits to a platform of the test's own, of which it stops services."""
    async with submitting(platform) as submitter:
        yield submitter


@pytest.fixture
def job() -> str:
    """The id of a job that no other test has."""
    return f"j-{token_hex(4)}"


async def told(submitter: Jobs, job_id: str, **options: Any) -> list[dict[str, Any]]:
    return [event async for event in submitter.follow(job_id, **options)]


def types(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


async def story(platform: Platform, job_id: str) -> list[str]:
    """Return what the job's log says, which ends with its end."""
    said = [event.type async for event in JobLog(platform.bus, "default", job_id).read()]
    assert said[-1] == "job.completed"
    return said


async def test_a_job_that_has_ended_is_told_from_its_beginning(submitter: Jobs, job: str, module_platform: Platform):
    await submitter.run("assistant", "hello", job_id=job, timeout_s=30)

    assert types(await told(submitter, job)) == await story(module_platform, job)


async def test_a_job_is_followed_from_before_it_was_submitted(submitter: Jobs, job: str, module_platform: Platform):
    following = asyncio.create_task(told(submitter, job))
    ended = await submitter.run("assistant", "hello", job_id=job, timeout_s=30)

    events = await following

    assert (ended.job_id, ended.status) == (job, "completed")
    assert types(events) == await story(module_platform, job)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))


async def test_a_follower_goes_on_after_what_it_knows(submitter: Jobs, job: str, module_platform: Platform):
    await submitter.run("assistant", "hello", job_id=job, timeout_s=30)

    assert types(await told(submitter, job, after_seq=4)) == (await story(module_platform, job))[4:]


async def test_a_long_log_is_read_page_by_page(
    submitter: Jobs, job: str, module_platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(job_events, "PAGE_MAX_BYTES", 1)
    await submitter.run("assistant", "hello", job_id=job, timeout_s=30)

    assert types(await told(submitter, job)) == await story(module_platform, job)


async def test_an_end_lost_on_the_way_is_read_later(
    submitter: Jobs, job: str, module_platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jobs, "LOOK_AGAIN_S", 0.1)
    # It hears of no job at all.
    monkeypatch.setattr(submitter, "_live", lambda job_id: f"live.default.not-{job_id}")
    following = asyncio.create_task(told(submitter, job))

    await submitter.run("assistant", "hello", job_id=job, timeout_s=30)

    assert types(await asyncio.wait_for(following, 30)) == await story(module_platform, job)


@alone
async def test_without_tracing_what_happens_from_now_on_is_told(platform: Platform, own_submitter: Jobs):
    await platform.stop("tracing")
    following = asyncio.create_task(told(own_submitter, "j1"))
    await own_submitter.run("assistant", "hello", job_id="j1", timeout_s=30)

    assert types(await asyncio.wait_for(following, 30))[-1] == "job.completed"


async def test_a_jobs_trace_is_linked_to_the_span_of_its_submitter(
    submitter: Jobs, job: str, module_platform: Platform
):
    with TracerProvider().get_tracer("shop").start_as_current_span("checkout") as span:
        await submitter.run("assistant", "hello", job_id=job, timeout_s=30)

    context = span.get_span_context()
    [submitted] = await module_platform.events_of(job, e.JobSubmitted)
    assert submitted.caller is not None
    assert submitted.caller.startswith(f"00-{context.trace_id:032x}-{context.span_id:016x}-")
    assert submitted.trace.trace_id != f"{context.trace_id:032x}"


async def test_a_job_run_twice_under_one_id_is_awaited_twice(submitter: Jobs, job: str):
    def run() -> Awaitable[JobView]:
        return submitter.run("assistant", "hello", job_id=job, timeout_s=30, user_id="ada")

    runs = [*await asyncio.gather(run(), run()), await run()]

    ends = [(one.job_id, one.status, one.agent, one.user_id, one.answer, one.steps, one.cost_usd) for one in runs]
    assert len(set(ends)) == 1
    assert ends[0][:4] == (job, "completed", "assistant", "ada")


async def test_another_job_under_a_taken_id_is_refused(submitter: Jobs, job: str):
    await submitter.run("assistant", "hello", job_id=job, timeout_s=30)

    with pytest.raises(Conflict, match=f"the job {job} is already another job, of another input"):
        await submitter.run("assistant", "something else", job_id=job, timeout_s=30)


@alone
async def test_a_job_that_waits_for_a_person_names_its_question(own_submitter: Jobs, platform: Platform):
    config = AgentConfig(tools=("calculator",), ask="always")
    await platform.bus.ask(PutAgent(tenant="default", name="careful", config=config), Agent)
    plan = turns(Say(tools=(("calculator", {"expression": "1 + 1"}),)), Say(text="done"))
    async with ChatServer(plan) as chat:
        await platform.stop("executor")
        await platform.start("executor", executor=ExecutorSettings(chat_base_url=chat.url))
        with pytest.raises(JobWaits) as waits:
            await own_submitter.run("careful", "add", job_id="j1", timeout_s=5, model="chat/m")

    assert waits.value.job_id == "j1"
    assert waits.value.question and waits.value.question in str(waits.value)


@alone
async def test_a_job_that_does_not_end_in_time_is_named(own_submitter: Jobs, platform: Platform):
    await platform.stop("executor")

    with pytest.raises(JobTimeout, match="the job j1 has not ended within 0.2 s and goes on"):
        await own_submitter.run("assistant", "hello", job_id="j1", timeout_s=0.2)


async def test_a_submission_that_is_no_job_names_what_is_wrong(submitter: Jobs):
    with pytest.raises(InvalidMessage, match="options.max_stepps"):
        await submitter.submit("assistant", "hello", max_stepps=3)


async def test_a_submission_that_the_bus_did_not_confirm_names_its_job(
    submitter: Jobs, job: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jobs, "ACK_WITHIN_S", 0.0)

    with pytest.raises(Unavailable, match=f"whether it stored the job {job} is not known"):
        await submitter.submit("assistant", "hello", job_id=job)


async def test_a_tenant_that_cannot_be_part_of_a_subject_is_refused():
    with pytest.raises(ValueError, match="a tenant cannot be called 'a b.c'"):
        Jobs(bus_broker(), tenant="a b.c")
