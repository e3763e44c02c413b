"""A provider that is away: its jobs park, cost nothing meanwhile, and go on where they were."""

from __future__ import annotations

from decimal import Decimal

import pytest

from wayline.contracts import events as e
from wayline.contracts.jobs import JobOptions
from wayline.executor.decide import retry_or_reroute
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import until

from .conftest import ExecutorPlatform

AWAY = Say(status=529, error={"type": "overloaded_error", "message": "Overloaded"})


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the tries before a job parks without pauses, and few enough that no gate closes."""
    monkeypatch.setattr(retry_or_reroute, "BACKOFF_S", (0.0,))
    monkeypatch.setattr(retry_or_reroute, "ATTEMPTS_MAX", 2)


async def test_jobs_park_while_their_provider_is_away_and_go_on(platform: ExecutorPlatform):
    away, asked = True, 0

    def answer(_: object) -> Say:
        nonlocal asked
        asked += 1
        return AWAY if away else Say("done")

    async with ChatServer(answer) as chat:
        await platform.executor(chat)
        await platform.begin("j1")
        await platform.until_parked("j1", times=1)
        tries = asked
        await platform.wake("j1")
        await platform.until_parked("j1", times=2)
        assert asked == tries + 1
        away = False
        await platform.wake("j1")
        ended = await platform.wait_for("j1")

    assert ended.answer == "done"
    assert asked == tries + 2
    [completed] = await platform.events_of("j1", e.ModelCompleted)
    assert completed.cost_usd is not None and ended.cost_usd == completed.cost_usd > Decimal(0)
    parked = await platform.events_of("j1", e.JobParked)
    assert [event.waiting.why for event in parked] == ["provider", "provider"]
    assert all(event.waiting.expires_at is not None for event in parked)


async def test_once_another_job_is_answered_parked_ones_go_on_in_turn(platform: ExecutorPlatform):
    """Without a router, which gives the turns, the first goes on and the others wait for theirs."""
    away, turns = True, "jobs.run.interactive_waiting.default"
    async with ChatServer(lambda _: AWAY if away else Say("done")) as chat:
        await platform.executor(chat)
        for job in ("j1", "j2", "j3"):
            await platform.begin(job)
            await platform.until_parked(job, times=1)
        away = False

        other = await platform.executor(chat)
        await platform.begin("j4")

        ended = [await platform.wait_for(job) for job in ("j1", "j4")]

        async def two_wait() -> bool:
            state = (await platform.bus.js.stream_info("RUN", subjects_filter=turns)).state
            return (state.subjects or {}).get(turns) == 2

        await until(two_wait, why="the tickets of the other two wait for turns")
        await other.stop(5)

    assert {job.answer for job in ended} == {"done"}


async def test_a_job_without_patience_fails_with_the_providers_error(platform: ExecutorPlatform):
    async with ChatServer(lambda _: AWAY) as chat:
        await platform.executor(chat)
        await platform.begin("j1", options=JobOptions(provider_patience_s=0))
        ended = await platform.wait_for("j1")

    assert ended.error is not None and ended.error.code == "overloaded"
