"""A job that is handed back is as it was: only a claim whose holder died may count against it."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from structlog.testing import capture_logs

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import NoteMessage
from wayline.contracts.jobs import Cancel, JobOptions
from wayline.executor.hold.claim import CLAIMS_MAX
from wayline.executor.perform import follow_up
from wayline.executor.run_tickets import Lane
from wayline.journal import Head, JobLog
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import until

from .conftest import ExecutorPlatform, stamp

ROLLOUTS = CLAIMS_MAX + 2


async def held_and_stopped(platform: ExecutorPlatform, chat: ChatServer, job_id: str) -> None:
    """An executor gets the job in hand, and is stopped."""
    service = await platform.executor(chat)
    (lane, *_) = (part for part in service.parts if isinstance(part, Lane))
    await until(lambda: ("default", job_id) in lane._by_job, why="the job is held")
    await service.stop(5)


async def head_of(platform: ExecutorPlatform, job_id: str) -> Head:
    head = await JobLog(platform.bus, "default", job_id).last()
    assert head is not None
    return head


async def types(platform: ExecutorPlatform, job_id: str) -> list[str]:
    return [event.type for event in await platform.events(job_id)]


async def test_a_job_waiting_for_the_registry_survives_many_rollouts(platform: ExecutorPlatform):
    async with ChatServer(lambda _: Say(text="never")) as chat:
        await platform.begin("waits", config=AgentConfig(tools=("away",)))
        for _ in range(ROLLOUTS):
            await held_and_stopped(platform, chat, "waits")
        claims = await platform.events_of("waits", e.JobClaimed)
        await platform.signal("waits", Cancel(reason="enough"))
        await platform.executor(chat)
        assert (await platform.wait_for("waits")).status == "cancelled"

    assert [claim.attempt for claim in claims] == [1] * ROLLOUTS
    reasons = {event.reason for event in await platform.events("waits") if isinstance(event, e.JobHandedBack)}
    assert reasons == {"its executor is being stopped"}


async def test_a_hand_back_and_its_claim_share_one_record(platform: ExecutorPlatform):
    async with ChatServer(lambda _: Say(text="never")) as chat:
        await platform.begin("waits", config=AgentConfig(tools=("away",)))
        for _ in range(3):
            before = (await head_of(platform, "waits")).sequence
            await held_and_stopped(platform, chat, "waits")
            assert (await head_of(platform, "waits")).sequence == before + 1
    assert (await types(platform, "waits"))[2:] == ["job.claimed", "job.handed_back"] * 3


async def take(platform: ExecutorPlatform, stream: str, *, most_bytes: int) -> None:
    """Have a stream refuse what is larger."""
    present = (await platform.bus.js.stream_info(stream)).config
    await platform.bus.js.update_stream(present.evolve(max_msg_size=most_bytes))


async def test_a_job_unable_to_park_is_handed_back_until_it_can(platform: ExecutorPlatform):
    """Its wait cannot be scheduled: the job that has no claim to lose by it waits for room."""
    async with ChatServer(lambda _: Say(text="never")) as chat:
        await take(platform, "LATER", most_bytes=1)
        head = await platform.begin("caps", options=JobOptions(at_cap="park"), held_usd=Decimal(0), ticket=False)
        owner = f"{await platform.ticket('caps', head)}:0"
        claim = e.JobClaimed(**stamp("caps", 3), executor="gone", epoch=1, owner=owner, attempt=CLAIMS_MAX - 1)
        note = e.ContextInjected(**stamp("caps", 4), note=NoteMessage(label="CONTEXT", text="it goes on"))
        log = JobLog(platform.bus, "default", "caps")
        await log.append([claim, note], head, owner=owner, attempt=CLAIMS_MAX - 1, epoch=1)
        await platform.executor(chat)

        async def refused() -> bool:
            return (await types(platform, "caps")).count("job.handed_back") == 3

        await until(refused, why="it has been handed back again and again")
        await take(platform, "LATER", most_bytes=-1)
        assert (await platform.wait_until_parked("caps")).life.waiting is not None

    claims = await platform.events_of("caps", e.JobClaimed)
    assert {claim.attempt for claim in claims[1:]} == {CLAIMS_MAX}
    reasons = [event.reason for event in await platform.events("caps") if isinstance(event, e.JobHandedBack)]
    assert "is full" in reasons[0]


async def test_no_record_follows_a_park_whose_wake_up_failed(
    platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch
):
    """Tickets that wake a job name its parked record: behind another one they would be stale."""
    real, refused = follow_up.newest, True

    async def newest(*asked: Any) -> int:
        return await real(*asked) + refused

    monkeypatch.setattr(follow_up, "newest", newest)
    async with ChatServer(lambda _: Say(text="never")) as chat:
        await platform.begin("parks", options=JobOptions(at_cap="park"), held_usd=Decimal(0))
        await take(platform, "RUN", most_bytes=1)
        await platform.executor(chat)

        async def again() -> bool:
            return (await platform.bus.js.consumer_info("RUN", "interactive")).delivered.consumer_seq >= 3

        await until(again, why="its ticket has come again")
        assert (await head_of(platform, "parks")).values[-1]["type"] == "job.parked"
        refused = False
        await platform.wait_until_parked("parks")
    assert (await types(platform, "parks"))[-2:] == ["job.claimed", "job.parked"]


async def test_nothing_is_written_behind_an_append_that_was_cut_short(
    platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch
):
    """Its record may be in or not: what came next in the log would be a guess."""
    real, stored = JobLog._append, asyncio.Event()

    async def unanswered(self: JobLog, events: Any, head: Head, *, expected: int) -> Head:
        appended = await real(self, events, head, expected=expected)
        if expected and not stored.is_set():
            stored.set()
            await asyncio.Event().wait()
        return appended

    monkeypatch.setattr(JobLog, "_append", unanswered)
    async with ChatServer(lambda _: Say(text="done")) as chat:
        service = await platform.executor(chat)
        await platform.begin("cut")
        await asyncio.wait_for(stored.wait(), 10)
        with capture_logs() as lines:
            await service.stop(0.1)
        assert [line for line in lines if line["log_level"] == "error"] == []
        await platform.executor(chat)
        assert (await platform.wait_for("cut")).status == "completed"
    assert "job.handed_back" not in await types(platform, "cut")
