"""What is paused waits and goes on where it was; what is limited runs so many jobs at once and no more."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio

from wayline.chassis.controls import BUCKET_STREAM, Controls, pause_subject
from wayline.contracts.jobs import Cancel, Status
from wayline.contracts.models import ModelCard, PutModel
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
from wayline.contracts.schedules import Firing, PutSchedule, RunSchedule, Schedule, ScheduleConfig
from wayline.contracts.tools import RUN_AGENT
from wayline.executor.run_tickets import Lane
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.journal import Job
from wayline.router.permits.granting import Granting
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform, until

from .families import child

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

    def controls(self, service: str) -> Controls:
        [controls] = [part for part in self.platform.services[service].parts if isinstance(part, Controls)]
        return controls

    def _heard(self, pause: Pause) -> bool:
        return pause in self.controls("executor")._pauses.values()

    async def resume(self, kind: Any, name: str) -> bool:
        asked = EndPause(tenant="default", kind=kind, name=name)
        return (await self.platform.bus.ask(asked, PauseEnded)).ended

    async def limit(self, whose: Any, name: str, most: int, **more: Any) -> None:
        limit = RunningLimit(whose=whose, name=name, max_running=most, **more)
        saved = await self.platform.bus.ask(PutRunningLimit(tenant="default", limit=limit), RunningLimitInForce)
        assert saved.max_running == most

        def heard() -> bool:
            return all(saved in self.controls(service)._limits.values() for service in ("router", "executor"))

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
        card = ModelCard(provider="chat", model="m", tier="standard")
        await module_platform.bus.ask(PutModel(tenant="default", card=card), ModelCard)
        await module_platform.put_agent("clerk", instructions="Be kind.", model="chat/m")
        await module_platform.put_agent("boss", tools=(), agents=("clerk",))
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


async def test_a_child_of_a_paused_agent_waits(world: World):
    await world.pause("agent", "clerk")
    world.model.tools["b1"] = (RUN_AGENT, {"agent": "clerk", "input": "do kid"})
    world.model.end("b1", "kid")
    await world.submit("b1", agent="boss")
    kid = child("b1")
    await world.waits(kid, "pause")
    await world.waits("b1", "children")

    assert "kid" not in world.model.asked
    assert await world.resume("agent", "clerk")
    assert await world.ended(kid, "b1") == [Status.COMPLETED] * 2


async def test_a_schedule_of_a_paused_agent_fires_jobs_that_wait(world: World):
    await world.pause("agent", "clerk")
    job = {"agent": "clerk", "input": "do s1", "options": {"model": "chat/m"}}
    plan = ScheduleConfig.model_validate({"job": job, "cron": "0 4 * * *"})
    await world.platform.bus.ask(PutSchedule(tenant="default", name="nightly", config=plan), Schedule)
    firing = await world.platform.bus.ask(RunSchedule(tenant="default", name="nightly", run_id="r1"), Firing)
    assert firing.job_id is not None
    await world.waits(firing.job_id, "pause")
    world.model.end("s1")

    assert "s1" not in world.model.asked
    assert await world.resume("agent", "clerk")
    assert await world.ended(firing.job_id) == [Status.COMPLETED]


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


async def test_a_parked_job_keeps_no_place_from_its_submission(world: World):
    await world.pause("agent", "clerk")
    await world.submit("o1", agent="clerk")
    await world.waits("o1", "pause")
    [granting] = [part for part in world.platform.services["router"].parts if isinstance(part, Granting)]
    async with world.platform.superuser() as conn:
        # As of a job that was let in by a limit that refuses, and whose executor did not tell that it is parked.
        await conn.execute(
            "UPDATE router.run_permits SET state = 'running', at = 0, since = now() - interval '1 hour' "
            "WHERE job_id = 'o1'"
        )
        await granting._sweep()
        left = await conn.fetch("SELECT job_id FROM router.run_permits WHERE job_id = 'o1'")
    await world.platform.signal("o1", Cancel(reason="enough"))

    assert left == [] and await world.ended("o1") == [Status.CANCELLED]
    assert await world.resume("agent", "clerk")


async def test_what_was_taken_away_is_forgotten_everywhere(world: World):
    lanes = await world.pause("lane", "batch")
    agents = await world.pause("agent", "clerk")
    stale = world.controls("executor")
    assert await world.resume("agent", "clerk")
    await until(lambda: agents not in stale._pauses.values(), why="the executor has heard of it")
    # As of one that was away when it was told.
    stale._pauses[pause_subject("agent", "default", "clerk")] = agents

    await world.controls("router").clear_ended(after_s=0)
    stored = (await world.platform.bus.js.stream_info(BUCKET_STREAM)).state
    await stale.read()

    assert stored.messages == 1 and list(stale._pauses.values()) == [lanes]
    assert await world.resume("lane", "batch")


async def test_an_executor_knows_what_is_paused_before_it_takes_a_job(world: World):
    """Parts start one after the other, each when the one before has started."""
    kinds = [type(part) for part in world.platform.services["executor"].parts]

    assert kinds.index(Controls) < kinds.index(Lane)
