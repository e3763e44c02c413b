"""One replica takes no more work, finishes what it has, and takes work again when it is told to."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest_asyncio

from wayline.chassis import Bus
from wayline.contracts.events import JobClaimed
from wayline.contracts.replicas import DescribeReplicas, DrainReplica, ReplicaState
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform, until
from wayline.testkit.processes import Fleet, ServiceProcess

SLOTS = 2


class Calls:
    """Model calls that the test ends."""

    def __init__(self) -> None:
        self.held: list[asyncio.Event] = []
        self.over = False
        self.first = Say(text="done")

    def answer(self, body: dict[str, Any]) -> Say:
        hold = asyncio.Event()
        if self.over:
            hold.set()
        self.held.append(hold)
        return replace(self.first if len(self.held) == 1 else Say(text="done"), hold=hold)

    def end_all(self) -> None:
        self.over = True
        for hold in self.held:
            hold.set()


@pytest_asyncio.fixture
async def calls() -> Calls:
    return Calls()


@pytest_asyncio.fixture
async def fleet(platform: Platform, calls: Calls, tmp_path: Path) -> AsyncIterator[Fleet]:
    """Executors as processes, each of its own name, for whose calls the test is the model."""
    await platform.start("router", "tool_registry")
    async with ChatServer(calls.answer) as chat:
        fleet = await platform.make_fleet(tmp_path)
        fleet.set("executor", WAYLINE_CHAT_BASE_URL=chat.url, WAYLINE_EXECUTOR_INTERACTIVE_SLOTS=str(SLOTS))
        yield fleet
        calls.end_all()


async def executors(bus: Bus) -> dict[str, ReplicaState]:
    """Ask all executors, by name."""
    found = await bus.ask_everyone(DescribeReplicas(tenant="default", service="executor"), ReplicaState)
    return {one.name: one for one in found}


def name_of(process: ServiceProcess, found: dict[str, ReplicaState]) -> str:
    return next(name for name in found if name.endswith(f"-{process.pid}"))


async def drain(bus: Bus, name: str, **how: Any) -> ReplicaState:
    return await bus.ask(DrainReplica(tenant="default", service="executor", name=name, **how), ReplicaState)


async def empty(bus: Bus, name: str) -> ReplicaState | None:
    """Return a replica that has nothing in hand; None: it has something."""
    one = (await executors(bus))[name]
    return None if one.in_hand else one


async def submit(platform: Platform, *jobs: str) -> None:
    for job in jobs:
        await platform.publish({"agent": "assistant", "input": job, "job_id": job, "options": {"model": "chat/m"}})
    await platform.wait_until_empty("SUBMIT")


async def claimed_by(platform: Platform, *jobs: str) -> Counter[str]:
    """Count which executors have claimed these jobs."""
    claims = [claim for job in jobs for claim in await platform.events_of(job, JobClaimed)]
    return Counter(claim.executor for claim in claims)


async def test_a_drained_executor_ends_what_it_has_and_takes_nothing_more(
    platform: Platform, fleet: Fleet, calls: Calls
):
    drained = await fleet.start("executor")
    await submit(platform, "j1", "j2")
    await until(lambda: len(calls.held) == 2, why="both slots are taken")
    name = name_of(drained, await executors(platform.bus))

    told = await drain(platform.bus, name)
    other = await fleet.start("executor")
    await submit(platform, "j3", "j4")
    await until(lambda: len(calls.held) == 4, why="the other executor runs what came later")
    calls.end_all()
    await platform.wait_until_empty("RUN")

    empty = (await executors(platform.bus))[name]
    assert (told.in_hand, told.ready, told.drained_at is not None) == (2, False, True)
    assert (empty.in_hand, empty.ready, empty.drained_at) == (0, False, told.drained_at)
    assert "drained" in empty.needs["work"]
    found = await executors(platform.bus)
    assert await claimed_by(platform, "j1", "j2") == {name.removeprefix("executor-"): 2}
    assert await claimed_by(platform, "j3", "j4") == {name_of(other, found).removeprefix("executor-"): 2}
    assert found[name_of(other, found)].ready


async def test_a_drained_executor_takes_work_again_when_that_is_undone(platform: Platform, fleet: Fleet, calls: Calls):
    calls.over = True
    process = await fleet.start("executor")
    name = name_of(process, await executors(platform.bus))
    await drain(platform.bus, name)
    await submit(platform, "j1", "j2", "j3")

    waiting = await platform.count("RUN")
    undone = await drain(platform.bus, name, undo=True)
    await platform.wait_until_empty("RUN")

    assert (waiting, undone.ready, undone.drained_at) == (3, True, None)
    assert len(calls.held) == 3


async def test_a_job_that_goes_on_beyond_finish_is_handed_to_another(platform: Platform, fleet: Fleet, calls: Calls):
    calls.first = Say(tools=(("get_current_time", {}),))
    process = await fleet.start("executor")
    await submit(platform, "j1")
    await until(lambda: len(calls.held) == 1, why="the first step runs")
    name = name_of(process, await executors(platform.bus))
    await drain(platform.bus, name, finish_s=0)
    other = await fleet.start("executor")

    calls.held[0].set()
    await until(lambda: len(calls.held) == 2, why="another executor runs the second step")
    found = await executors(platform.bus)
    calls.end_all()
    await platform.wait_until_empty("RUN")
    drained = await until(lambda: empty(platform.bus, name), why="the first one has nothing in hand")

    names = [one.removeprefix("executor-") for one in (name, name_of(other, found))]
    claims = await platform.events_of("j1", JobClaimed)
    assert [claim.executor for claim in claims] == names
    assert drained is not None and not drained.ready, "it is empty, and stays"
    assert len(calls.held) == 2, "no step was done twice"


async def test_only_the_replica_that_is_named_is_drained(platform: Platform, fleet: Fleet):
    for _ in range(2):
        await fleet.start("executor")
    first, second = sorted(await executors(platform.bus))

    await drain(platform.bus, second)

    found = await executors(platform.bus)
    assert (found[first].drained_at, found[second].drained_at is None) == (None, False)
