"""A job leaves nothing behind that only Python's cycle collector finds: services have it run seldom."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from typing import Any

import pytest

from wayline.chassis import Ask
from wayline.contracts.agents import AgentConfig
from wayline.contracts.events import ModelFailed
from wayline.contracts.jobs import Cancel
from wayline.contracts.tools import CallTool, Effect, ListTools, ToolDefinition, ToolList, ToolReply
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.testkit import until
from wayline.testkit.cycles import ours, uncollected, whose

from .conftest import ExecutorPlatform

JOBS = [f"j{n}" for n in range(20)]
CLOCK = ToolDefinition(name="clock", input_schema={"type": "object"}, effect=Effect.READ)
WORKING = AgentConfig(tools=("clock",))
ASKS_TWICE = turns(Say(tools=(("clock", {}),)), Say(tools=(("clock", {}), ("clock", {}))), Say(text="It is late."))


@pytest.fixture
async def tools(platform: ExecutorPlatform) -> None:
    """A registry of one tool."""

    async def on_list(_: ListTools) -> ToolList:
        return ToolList(tools=(CLOCK,))

    async def on_call(_: CallTool) -> ToolReply:
        return ToolReply(status="success", content="23:59")

    await platform.answer(Ask(ListTools, on_list), Ask(CallTool, on_call))


async def test_a_job_makes_no_reference_cycles(platform: ExecutorPlatform, tools: None):
    async with ChatServer(ASKS_TWICE) as chat:
        await platform.executor(chat)
        await run(platform, "first")

        with uncollected() as found:
            await run(platform, *JOBS)

    assert Counter(map(whose, found)) == {}
    assert {(await platform.wait_for(job_id)).answer for job_id in JOBS} == {"It is late."}


@pytest.mark.slow
async def test_a_call_that_broke_off_leaves_no_reference_cycles_of_ours(platform: ExecutorPlatform, tools: None):
    number = itertools.count()

    def a_few_are_cut(body: dict[str, Any]) -> Say:
        return Say(text="It is", cut=True) if next(number) % 20 == 9 else ASKS_TWICE(body)

    async with ChatServer(a_few_are_cut) as chat:
        await platform.executor(chat)
        await run(platform, "first")

        with uncollected() as found:
            await run(platform, *JOBS)

    assert Counter(filter(ours, map(whose, found))) == {}
    assert [failed for job_id in JOBS for failed in await platform.events_of(job_id, ModelFailed)] != []


@pytest.mark.slow
async def test_a_cancelled_job_leaves_no_reference_cycles_of_ours(platform: ExecutorPlatform):
    async with ChatServer(lambda _: Say(text="never all of it", hold=asyncio.Event())) as chat:
        await platform.executor(chat)
        await cancel(platform, chat, "first")

        with uncollected() as found:
            await cancel(platform, chat, *JOBS)

    assert Counter(filter(ours, map(whose, found))) == {}
    assert {(await platform.wait_for(job_id)).status for job_id in JOBS} == {"cancelled"}


async def run(platform: ExecutorPlatform, *jobs: str) -> None:
    """Have jobs worked off. Nobody reads their logs meanwhile: each subscription of the bus's client is a cycle."""
    for job_id in jobs:
        await platform.begin(job_id, config=WORKING)
    await platform.wait_until_empty("RUN")


async def cancel(platform: ExecutorPlatform, chat: ChatServer, *jobs: str) -> None:
    """Begin jobs, and cancel each while its model writes."""
    before = len(chat.calls)
    for job_id in jobs:
        await platform.begin(job_id)
    await until(lambda: len(chat.calls) == before + len(jobs), why="each job's model is asked")
    for job_id in jobs:
        await platform.signal(job_id, Cancel(reason="enough"))
    await platform.wait_until_empty("RUN")
