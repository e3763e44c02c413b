"""A session of twelve turns over two executors, of which one is killed: each prompt goes on from the one before."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from wayline.contracts import events as e
from wayline.contracts.models import ModelCard, PutModel
from wayline.llm.catalogue import bundled
from wayline.simulator import Asked, Charge, Say, Simulator
from wayline.testkit import until

from .conftest import MakePlatform
from .platform import FaultPlatform

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

MODEL = "anthropic/claude-sonnet-5-5"
TURNS, KILLED = 12, 5
ANSWER = "The tide comes in and goes out again, as it did yesterday. " * 40
WINDOW = 7_300
"""It is four fifths full after about seven turns."""


class Talk:
    """A provider that holds its first answer to one turn until an executor is dead."""

    def __init__(self) -> None:
        self.held = asyncio.Event()
        self.asked: list[str] = []

    async def say(self, asked: Asked) -> Say:
        self.asked.append(asked.attempt)
        if asked.attempt.endswith(f"/t{KILLED}/1/m1"):
            await self.held.wait()
        return Say(text="They talked of the tide." if "/a" in asked.attempt else ANSWER)


async def kill_its_executor(platform: FaultPlatform, job_id: str) -> None:
    """Kill the process that holds a job."""
    events = await platform.events(job_id)
    pid = int(next(event.executor for event in events if isinstance(event, e.JobClaimed)).rpartition("-")[2])
    next(process for process in platform.fleet.running("executor") if process.pid == pid).kill()


async def play(platform: FaultPlatform, talk: Talk, prefix: str, session: str | None) -> list[list[e.Event]]:
    """Play the turns, in a session or each with all that was said before in its input."""
    logs, transcript = [], ""
    for number in range(1, TURNS + 1):
        job_id, text = f"{prefix}{number}", f"This is turn {number} of the talk."
        body = {"agent": "talker", "input": text if session else transcript + text, "job_id": job_id}
        transcript += f"{text}\n{ANSWER}\n"
        await platform.publish({**body, "session_id": session, "options": {"model": MODEL, "budget_usd": "5"}})
        if job_id == f"t{KILLED}":
            await until(lambda: any(f"/t{KILLED}/" in one for one in talk.asked), why="its model is asked", within=60)
            await kill_its_executor(platform, job_id)
            talk.held.set()
        await platform.wait_for(job_id)
        logs.append(await platform.events(job_id))
    return logs


def answered(simulator: Simulator, prefix: str) -> list[Charge]:
    """Return the bill's answered calls of conversations."""
    calls = [one for one in simulator.bill.charges if f"/{prefix}" in one.attempt and "/m" in one.attempt]
    return [one for one in calls if one.outcome == "answered"]


def cached_share(charges: list[Charge]) -> float:
    return sum(one.usage.cache_read for one in charges) / sum(one.usage.input for one in charges)


async def test_twelve_turns_read_one_cache_over_a_killed_executor(make_platform: MakePlatform):
    talk = Talk()
    async with Simulator(talk.say) as simulator:
        platform = await make_platform()
        for service in ("router", "executor"):
            platform.fleet.set(service, ANTHROPIC_BASE_URL=simulator.url)
        await platform.fleet.ensure("router", "tool_registry")
        await asyncio.gather(platform.fleet.start("executor"), platform.fleet.start("executor"))
        card = next(card for card in bundled() if card.name == MODEL)
        small = card.model_copy(update={"context_window": WINDOW})
        await platform.bus.ask(PutModel(tenant="default", card=small), ModelCard)
        await platform.put_agent("talker", instructions="You know the sea. " * 300, tools=(), max_output_tokens=1_500)

        logs = await play(platform, talk, "t", "s1")
        await platform.bus.ask(PutModel(tenant="default", card=card), ModelCard)
        await play(platform, talk, "p", None)
        await platform.fleet.stop()

    asked = [event for log in logs for event in log if isinstance(event, e.ModelRequested)]
    compacted = [number for number, log in enumerate(logs, 1) if any(isinstance(x, e.ContextCompacted) for x in log)]
    broken = [int(one.job_id[1:]) for one in asked if one.cache_break is not None]
    served = {event.executor for log in logs for event in log if isinstance(event, e.JobClaimed)}
    assert len(served) == 2
    assert len(compacted) == 1
    assert KILLED < compacted[0] < TURNS
    assert broken == compacted
    assert [one.cache_break for one in asked if one.cache_break] == ["compaction"]
    assert len([one for one in asked if one.job_id == f"t{KILLED}"]) == 2
    for before, after in pairwise(answered(simulator, "t")):
        if f"/t{compacted[0]}/" not in after.attempt:
            assert after.usage.cache_read >= before.usage.cache_read + before.usage.cache_write_5m, after.attempt
    with_session, without = (cached_share(answered(simulator, prefix)) for prefix in "tp")
    print(f"read from the cache: {with_session:.0%} of the input in a session, {without:.0%} without one")
    assert with_session > 0.7 > without
