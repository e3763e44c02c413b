"""A thousand held jobs of one agent hold one configuration and one catalogue between them."""

import asyncio
from operator import attrgetter

from wayline.contracts.agents import AgentConfig
from wayline.executor.run_tickets import Lane
from wayline.journal import Job
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import until

from .conftest import ExecutorPlatform

JOBS = 12


async def held(platform: ExecutorPlatform, chat: ChatServer, *job_ids: str) -> dict[str, Job]:
    """The jobs as their executor holds them, each in the middle of its model call."""
    await until(lambda: len(chat.calls) == len(job_ids), why="every job has asked its model")
    lane = next(part for part in platform.services["executor"].parts if isinstance(part, Lane))
    return {job_id: lane._by_job["default", job_id].writer.job for job_id in job_ids}  # type: ignore[attr-defined]


async def test_jobs_of_one_agent_hold_one_configuration_and_one_catalogue(platform: ExecutorPlatform):
    go_on, names = asyncio.Event(), [f"j{n}" for n in range(JOBS)]
    async with ChatServer(lambda _: Say(text="done", hold=go_on)) as chat:
        await platform.executor(chat)
        for name in names:
            await platform.begin(name)
        jobs = await held(platform, chat, *names)
        written = await platform.job("j0")
        go_on.set()
        for name in names:
            assert (await platform.wait_for(name)).answer == "done"

    for what in (attrgetter("routing.config"), attrgetter("routing.candidates")):
        assert len({id(what(job)) for job in jobs.values()}) == 1, what
        assert what(jobs["j0"]) == what(written)
    for what in map(attrgetter, ("life.submitted", "routing.route", "routing.limits")):
        assert len({id(what(job).__pydantic_fields_set__) for job in jobs.values()}) == 1, what
        assert what(jobs["j0"]) == what(written)


async def test_a_job_runs_with_the_configuration_in_its_own_log(platform: ExecutorPlatform):
    """A router that began anew counts versions from 1 again."""
    go_on = asyncio.Event()
    async with ChatServer(lambda _: Say(text="done", hold=go_on)) as chat:
        await platform.executor(chat)
        await platform.begin("old", config=AgentConfig(tools=(), instructions="be old"))
        await platform.begin("new", config=AgentConfig(tools=(), instructions="be new"))
        jobs = await held(platform, chat, "old", "new")
        go_on.set()
        await platform.wait_for("old")
        await platform.wait_for("new")

    instructions = {
        name: job.routing.config.instructions for name, job in jobs.items() if job.routing.config is not None
    }
    assert instructions == {"old": "be old", "new": "be new"}
