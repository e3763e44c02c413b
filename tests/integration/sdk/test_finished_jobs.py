"""A durable subscriber to finished jobs: with a real bus and its accounts, real services, and restarts."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from secrets import token_hex

import pytest
import pytest_asyncio

from wayline.contracts import headers as h
from wayline.contracts.errors import Refused, Reject
from wayline.contracts.finished_jobs import FinishedBatch, TakeFinished
from wayline.sdk import FinishedJob, FinishedJobs, bus_broker
from wayline.testkit import Platform, until
from wayline.tracing.handlers import finished_jobs
from wayline.tracing.settings import Settings as TracingSettings

pytestmark = [pytest.mark.asyncio(loop_scope="module")]
alone = pytest.mark.asyncio(loop_scope="function")

QUICK = TracingSettings(linger_ms=5)


class Follower:
    """A service that notes the jobs it is given; some of them it cannot handle."""

    def __init__(self, platform: Platform, *, durable: str = "billing", **options: float | int) -> None:
        self.jobs: list[FinishedJob] = []
        self.refuses: set[str] = set()
        self.hangs: set[str] = set()
        self.exits: set[str] = set()
        self.finished = FinishedJobs(durable, broker=bus_broker(platform.nats.url), **options)  # type: ignore[arg-type]
        self.finished.handler(self._on_finished)
        self._app = self.finished.application()

    async def _on_finished(self, job: FinishedJob) -> None:
        self.jobs.append(job)
        if job.job_id in self.hangs:
            await asyncio.Event().wait()
        if job.job_id in self.exits:
            sys.exit(1)
        if job.job_id in self.refuses:
            raise ValueError(f"no invoice for {job.job_id}")

    async def start(self) -> None:
        await self._app.start()

    async def stop(self) -> None:
        await self._app.stop()

    async def crash(self) -> None:
        """End as a killed process does: nothing more is said."""
        assert self.finished._following is not None  # pyright: ignore[reportPrivateUsage]
        self.finished._following.cancel()  # pyright: ignore[reportPrivateUsage]
        for task in list(self.finished._in_hand):  # pyright: ignore[reportPrivateUsage]
            task.cancel()
        await self.finished.broker.stop()

    async def given(self, *job_ids: str) -> None:
        wanted = sorted(job_ids)
        await until(lambda: sorted(job.job_id for job in self.jobs) == wanted, why=f"{wanted} were handed out")


@pytest_asyncio.fixture(loop_scope="module")
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
async def own_stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(module_platform: Platform) -> Platform:
    return await serve(module_platform)


@pytest.fixture
async def own_served(platform: Platform) -> Platform:
    """Services of the test's own, which looks at all dead letters."""
    return await serve(platform)


async def serve(platform: Platform) -> Platform:
    await platform.start("router", "executor", "tool_registry", "tracing", tracing=QUICK)
    # It calls no tool: what its jobs do is of no matter here.
    await platform.put_agent("assistant", tools=())
    return platform


@pytest.fixture
def durable() -> str:
    """The name of a follower that no other test has."""
    return f"billing-{token_hex(4)}"


def job_ids(count: int) -> list[str]:
    """Return ids of jobs that no other test has."""
    return [f"j{n}-{token_hex(4)}" for n in range(count)]


async def started(stack: AsyncExitStack, follower: Follower) -> Follower:
    await follower.start()
    stack.push_async_callback(follower.stop)
    return follower


async def test_each_finished_job_is_handled_once_across_a_restart(
    served: Platform, stack: AsyncExitStack, durable: str
):
    j1, j2, j3 = job_ids(3)
    first = Follower(served, durable=durable)
    await first.start()
    await served.submit(j1, "hello")
    await first.given(j1)
    await first.stop()

    await served.submit(j2, "hello")
    await served.wait_for(j2)
    second = await started(stack, Follower(served, durable=durable))
    await second.given(j2)
    await served.submit(j3, "hello")
    await second.given(j2, j3)

    (job,) = first.jobs
    assert (job.job_id, job.status, job.agent, job.delivery, job.cut) == (j1, "completed", "assistant", 1, False)
    assert job.answer


async def test_a_job_whose_follower_crashed_comes_again(served: Platform, stack: AsyncExitStack, durable: str):
    [j1] = job_ids(1)
    first = Follower(served, durable=durable, ack_wait_s=0.5)
    first.hangs.add(j1)
    await first.start()
    await served.submit(j1, "hello")
    await first.given(j1)
    await first.crash()

    second = await started(stack, Follower(served, durable=durable, ack_wait_s=0.5))
    await second.given(j1)

    assert [job.delivery for job in second.jobs] == [2]


@alone
async def test_a_refused_job_comes_again_then_is_put_aside(
    own_served: Platform, own_stack: AsyncExitStack, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(finished_jobs, "RETRY_FIRST_S", 0.05)
    follower = Follower(own_served, deliveries_max=2)
    follower.refuses.add("j1")
    await started(own_stack, follower)
    await own_served.submit("j1", "hello")

    async def is_aside() -> bool:
        return bool(await own_served.dead_letters())

    await until(is_aside, why="the job is put aside")
    await own_served.submit("j2", "hello")
    await follower.given("j1", "j1", "j2")

    (letter,) = await own_served.dead_letters()
    assert [job.delivery for job in follower.jobs] == [1, 2, 1]
    assert (letter[h.DEAD_CONSUMER], letter[h.DEAD_DELIVERIES]) == ("billing", "2")
    assert letter[h.DEAD_REASON] == "ValueError: no invoice for j1"


async def test_two_followers_each_get_every_job_and_share_within(served: Platform, stack: AsyncExitStack, durable: str):
    billing = [await started(stack, Follower(served, durable=durable)) for _ in range(2)]
    audit = await started(stack, Follower(served, durable=f"{durable}-audit"))
    jobs = job_ids(6)
    for job_id in jobs:
        await served.submit(job_id, "hello")

    await audit.given(*jobs)
    await until(lambda: sum(len(one.jobs) for one in billing) >= len(jobs), why="billing has all of them")

    assert sorted(job.job_id for one in billing for job in one.jobs) == jobs


async def test_jobs_that_ended_before_and_of_others_are_not_handed_out(
    served: Platform, stack: AsyncExitStack, durable: str
):
    before, theirs, after = job_ids(3)
    await served.submit(before, "hello")
    await served.wait_for(before)
    others = await served.new_tenant()
    follower = await started(stack, Follower(served, durable=durable))
    await others.submit(theirs, "hello")
    await others.wait_for(theirs)
    await served.submit(after, "hello")

    await follower.given(after)


@alone
async def test_a_tenant_has_a_bounded_number_of_followers(platform: Platform, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(finished_jobs, "FOLLOWERS_MAX", 1)
    await platform.start("tracing", tracing=QUICK)
    await platform.bus.ask(TakeFinished(tenant="default", follower="one"), FinishedBatch)

    with pytest.raises(Reject) as refused:
        await platform.bus.ask(TakeFinished(tenant="default", follower="two"), FinishedBatch)

    assert isinstance(refused.value, Refused)
    assert refused.value.code == "too_many"


async def test_a_slow_handler_holds_no_other_job_back(served: Platform, stack: AsyncExitStack, durable: str):
    long, last = job_ids(2)
    slow = Follower(served, durable=durable)
    slow.hangs.add(long)
    await slow.start()
    await served.submit(long, "hello")
    await slow.given(long)
    jobs = job_ids(6)
    for job_id in jobs:
        await served.submit(job_id, "hello")

    await slow.given(long, *jobs)
    await slow.crash()
    other = await started(stack, Follower(served, durable=durable))
    await served.submit(last, "hello")
    await other.given(last)


async def test_what_the_handler_is_done_with_is_said_meanwhile(served: Platform, stack: AsyncExitStack, durable: str):
    slow, j1, j2 = job_ids(3)
    first = Follower(served, durable=durable, ack_wait_s=3)
    first.hangs.add(slow)
    await first.start()
    for job_id in (slow, j1, j2):
        await served.submit(job_id, "hello")
    await first.given(slow, j1, j2)
    await until(lambda: not first.finished._done, why="they are said to be done")  # pyright: ignore[reportPrivateUsage]
    await first.crash()

    second = await started(stack, Follower(served, durable=durable, ack_wait_s=3))
    await second.given(slow)

    assert [job.delivery for job in second.jobs] == [2]


@alone
async def test_a_handler_that_hangs_is_cut_and_its_job_put_aside(own_served: Platform, own_stack: AsyncExitStack):
    follower = Follower(own_served, ack_wait_s=1, deliveries_max=1)
    follower.hangs.add("j1")
    await started(own_stack, follower)
    await own_served.submit("j1", "hello")

    async def is_aside() -> bool:
        return bool(await own_served.dead_letters())

    await until(is_aside, why="the job is put aside")

    (letter,) = await own_served.dead_letters()
    assert letter[h.DEAD_REASON] == "the handler took longer than 0.9 s"


async def test_a_drain_cuts_a_handler_that_hangs(served: Platform, stack: AsyncExitStack, durable: str):
    [j1] = job_ids(1)
    first = Follower(served, durable=durable, drain_grace_s=0.1)
    first.hangs.add(j1)
    await first.start()
    await served.submit(j1, "hello")
    await first.given(j1)

    await asyncio.wait_for(first.stop(), 30)

    second = await started(stack, Follower(served, durable=durable))
    await second.given(j1)


async def test_a_handler_that_exits_ends_neither_process_nor_others(
    served: Platform, stack: AsyncExitStack, durable: str
):
    j1, j2 = job_ids(2)
    follower = Follower(served, durable=durable)
    follower.exits.add(j1)
    await started(stack, follower)
    for job_id in (j1, j2):
        await served.submit(job_id, "hello")

    await until(lambda: len(follower.jobs) >= 3, why="the one comes again, the other came")

    assert {job.job_id for job in follower.jobs} == {j1, j2}


async def test_a_handler_that_is_no_coroutine_function_is_refused():
    def bill(job: FinishedJob) -> None: ...

    with pytest.raises(TypeError, match="must be an async def"):
        FinishedJobs("billing").handler(bill)  # type: ignore[type-var]


@pytest.mark.parametrize("name", ["A_b", "", "a b"])
async def test_a_name_that_no_follower_can_have_is_refused(name: str):
    with pytest.raises(ValueError, match="small letters, digits and hyphens"):
        FinishedJobs(name)
