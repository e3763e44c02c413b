"""What is paused waits and goes on where it was; what is limited runs so many jobs at once and no more."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio

from wayline.contracts.jobs import Cancel, Status
from wayline.contracts.run_controls import (
    DeleteRunningLimit,
    EndPause,
    ListPauses,
    Pause,
    PauseEnded,
    PauseList,
    PutPause,
    PutRunningLimit,
    RunningLimit,
    RunningLimitDeleted,
    RunningLimitInForce,
)
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.journal import Job
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform, until

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


@dataclass
class Model:
    """A model that answers each job once the test lets it; the second word of what it is told names the job."""

    held: dict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))
    asked: list[str] = field(default_factory=list)
    tools: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)

    def say(self, body: dict[str, Any]) -> Say:
        job_id = next(str(one["content"]).split()[1] for one in body["messages"] if one["role"] == "user")
        first = job_id not in self.asked
        self.asked.append(job_id)
        tools = (self.tools[job_id],) if first and job_id in self.tools else ()
        return Say(text="Yes indeed.", tools=tools, hold=self.held[job_id] if first else None)

    @property
    def running(self) -> list[str]:
        return [job_id for job_id in dict.fromkeys(self.asked) if not self.held[job_id].is_set()]

    def end(self, *job_ids: str) -> None:
        for job_id in job_ids:
            self.held[job_id].set()


@dataclass
class World:
    platform: Platform
    model: Model

    async def submit(self, *job_ids: str, agent: str = "assistant", **fields: Any) -> None:
        for job_id in job_ids:
            body = {"agent": agent, "input": f"do {job_id}", "job_id": job_id, "options": {"model": "chat/m"}}
            await self.platform.publish({**body, **fields})

    async def pause(self, kind: Any, name: str, *, now: bool = False) -> Pause:
        asked = PutPause(tenant="default", kind=kind, name=name, reason="a bad tool", by="ops", now=now)
        pause = await self.platform.bus.ask(asked, Pause)
        await until(lambda: self._heard(pause), why="the executor has heard of it")
        return pause

    def _heard(self, pause: Pause) -> bool:
        [controls] = [part for part in self.platform.services["executor"].parts if type(part).__name__ == "Controls"]
        return pause in controls._pauses.values()

    async def resume(self, kind: Any, name: str) -> bool:
        asked = EndPause(tenant="default", kind=kind, name=name)
        return (await self.platform.bus.ask(asked, PauseEnded)).ended

    async def limit(self, whose: Any, name: str, most: int, **more: Any) -> None:
        limit = RunningLimit(whose=whose, name=name, max_running=most, **more)
        saved = await self.platform.bus.ask(PutRunningLimit(tenant="default", limit=limit), RunningLimitInForce)
        assert saved.max_running == most

        def heard() -> bool:
            return all(
                saved in part._limits.values()
                for service in self.platform.services.values()
                for part in service.parts
                if type(part).__name__ == "Controls"
            )

        await until(heard, why="every process has heard of it")

    async def unlimit(self, whose: Any, name: str) -> None:
        asked = DeleteRunningLimit(tenant="default", whose=whose, name=name)
        assert (await self.platform.bus.ask(asked, RunningLimitDeleted)).deleted

    async def waits(self, job_id: str, why: str) -> Job:
        def parked(job: Job) -> bool:
            return job.life.waiting is not None and job.life.waiting.why == why

        return await self.platform.wait_until(job_id, parked, f"{job_id} waits for its {why}")

    async def runs(self, *job_ids: str) -> None:
        await until(lambda: set(job_ids) <= set(self.model.asked), why=f"{job_ids} ask their model")

    async def ended(self, *job_ids: str) -> list[Status]:
        return [(await self.platform.wait_for(job_id)).status for job_id in job_ids]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(module_platform: Platform) -> AsyncIterator[World]:
    model = Model()
    async with ChatServer(model.say) as chat:
        settings = ExecutorSettings(chat_base_url=chat.url)
        await module_platform.start("router", "tool_registry", "executor", executor=settings)
        await module_platform.put_agent("clerk", instructions="Be kind.")
        yield World(module_platform, model)


async def test_jobs_of_a_paused_agent_wait_until_it_is_resumed(world: World):
    pause = await world.pause("agent", "clerk")
    await world.submit("p1", "p2", agent="clerk")
    await world.submit("p3")
    waiting = (await world.waits("p1", "pause")).life.waiting
    await world.runs("p3")
    listed = await world.platform.bus.ask(ListPauses(tenant="default"), PauseList)
    world.model.end("p1", "p2", "p3")

    assert waiting is not None and waiting.question == pause.words
    assert "agent clerk was paused by ops at" in pause.words and pause.words.endswith(": a bad tool")
    assert listed.pauses == (pause,)
    assert (await world.ended("p3")) == [Status.COMPLETED] and "p1" not in world.model.asked
    assert await world.resume("agent", "clerk") and not await world.resume("agent", "clerk")
    assert await world.ended("p1", "p2") == [Status.COMPLETED] * 2


async def test_time_in_which_a_job_is_paused_is_not_its_own(world: World):
    await world.pause("lane", "batch")
    await world.submit("q1", options={"model": "chat/m", "lane": "batch", "max_seconds": 60})
    parked = await world.waits("q1", "pause")
    assert await world.resume("lane", "batch")
    await world.runs("q1")

    job = await world.platform.job("q1")
    world.model.end("q1")

    assert job.life.rested.total_seconds() > 0 and parked.life.deadline is not None
    assert job.life.deadline == parked.life.deadline + job.life.rested
    assert await world.ended("q1") == [Status.COMPLETED]


async def test_a_running_job_of_a_paused_tenant_ends(world: World):
    await world.submit("r1")
    await world.runs("r1")
    await world.pause("tenant", "default")
    world.model.end("r1")

    assert await world.ended("r1") == [Status.COMPLETED]
    assert await world.resume("tenant", "default")


async def test_a_pause_at_once_parks_before_the_next_step(world: World):
    world.model.tools["n1"] = ("calculator", {"expression": "1 + 1"})
    await world.submit("n1")
    await world.runs("n1")
    await world.pause("agent", "assistant", now=True)
    world.model.end("n1")
    await world.waits("n1", "pause")
    kinds = [event.type for event in await world.platform.events("n1")]

    assert "model.completed" in kinds and "tool.requested" not in kinds
    assert await world.resume("agent", "assistant")
    assert await world.ended("n1") == [Status.COMPLETED]
    assert [event.type for event in await world.platform.events("n1")].count("tool.completed") == 1


async def test_a_paused_job_is_cancelled_at_once(world: World):
    await world.pause("agent", "clerk")
    await world.submit("c1", agent="clerk")
    await world.waits("c1", "pause")
    await world.platform.signal("c1", Cancel(reason="not any more"))

    assert await world.ended("c1") == [Status.CANCELLED]
    assert await world.resume("agent", "clerk")


async def test_no_more_jobs_of_an_agent_run_than_may(world: World):
    jobs = [f"l{n}" for n in range(7)]
    await world.limit("agent", "clerk", 2)
    await world.submit(*jobs, agent="clerk")
    for _ in jobs:
        await until(lambda: world.model.running, why="a job runs")
        waiting = [job for job in jobs if job not in world.model.asked]
        assert len(world.model.running) <= 2
        world.model.end(world.model.running[0])
        if waiting:
            await until(lambda left=waiting: set(left) & set(world.model.asked), why="the next one begins")

    assert await world.ended(*jobs) == [Status.COMPLETED] * len(jobs)
    await world.unlimit("agent", "clerk")


async def test_a_job_beyond_a_limit_that_refuses_is_refused(world: World):
    await world.limit("user", "*", 1, when_full="refuse")
    await world.submit("u1", user_id="ann")
    await world.runs("u1")
    await world.submit("u2", user_id="ann")
    await world.submit("u3", user_id="bob")
    await world.runs("u3")

    refused = await world.platform.wait_for("u2")
    world.model.end("u1", "u3")

    assert refused.error is not None and refused.error.code == "too_many_running"
    assert refused.error.message.startswith("1 of the 1 jobs run that may run at once for each user")
    assert await world.ended("u1", "u3") == [Status.COMPLETED] * 2
    # A job has its place until it is settled.
    await world.platform.wait_until_empty("RUN")
    await world.submit("u4", user_id="ann")
    world.model.end("u4")
    assert await world.ended("u4") == [Status.COMPLETED]
    await world.unlimit("user", "*")
