"""What a holder waits for, it waits for so long and no longer."""

import asyncio
from functools import partial
from typing import Any

import pytest
from structlog.testing import capture_logs

from wayline.contracts import headers as h
from wayline.executor.decide.approvals import judge_decision
from wayline.executor.decide.client_calls import end_calls
from wayline.executor.hold import held_job, signals
from wayline.executor.hold.claim import Ticket
from wayline.executor.hold.held_job import HeldJob
from wayline.executor.hold.job_heartbeats import Heartbeats
from wayline.executor.hold.log_writer import LogWriter
from wayline.executor.hold.signals import Meanings
from wayline.journal import Head, Job, JobLog, State, Stored

A_MOMENT_S = 0.001
LONG_S = 60.0


@pytest.fixture
def hold() -> HeldJob:
    nobody: Any = None
    writer = LogWriter(JobLog(nobody, "acme", "j1"), Head(1, State.NEW, 2, "hash"), Job(job_id="j1", tenant="acme"))
    meanings = Meanings(judge_decision, partial(end_calls, tokens_max=1_000))
    parts = {"draining": asyncio.Event(), "heartbeats": Heartbeats(LONG_S), "meanings": meanings}
    return HeldJob(nobody, Ticket("acme", "j1", 1, 1, 1), nobody, writer, **parts)


async def test_what_is_not_over_in_time_is_stopped(hold):
    ended = asyncio.Event()

    async def never() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(TimeoutError):
        await hold.listening(never(), finish_when_draining=True, seconds=A_MOMENT_S)
    assert ended.is_set()


async def test_a_limit_that_is_over_does_not_end_what_comes_next(hold):
    with pytest.raises(TimeoutError):
        await hold.listening(asyncio.Event().wait(), finish_when_draining=True, seconds=A_MOMENT_S)

    assert await hold.listening(asyncio.sleep(A_MOMENT_S, "done"), finish_when_draining=True, seconds=LONG_S) == "done"


async def test_a_beat_reads_no_log_that_was_appended_to(hold, monkeypatch):
    asked: list[str] = []

    async def no_record(_: object, subject: str) -> None:
        asked.append(subject)

    async def no_signal(*_: object) -> int:
        return 0

    monkeypatch.setattr(held_job, "last_record", no_record)
    monkeypatch.setattr(signals, "newest", no_signal)

    hold.writer.head = hold.writer.head.stored(7, "m7")
    await hold.look()
    assert asked == []
    await hold.look()
    assert asked == ["events.acme.j1"]


async def test_a_beat_that_finds_another_owner_stops_the_holder(hold, monkeypatch):
    others = Head(9, State.NEW, 3, "hash", owner="another")

    async def of_another(*_: object) -> Stored:
        return Stored(9, {h.RECORD: others.header()}, b"")

    async def no_signal(*_: object) -> int:
        return 0

    monkeypatch.setattr(held_job, "last_record", of_another)
    monkeypatch.setattr(signals, "newest", no_signal)
    holder = asyncio.create_task(asyncio.Event().wait())
    hold.start_beating(holder)

    with capture_logs() as logged:
        await hold.look()

    assert holder.cancelled() and hold.fenced
    assert [(line["event"], line["job"]) for line in logged] == [("fenced", "j1")]
