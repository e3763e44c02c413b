"""What a writer notes is appended as one record, or the job is another writer's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from wayline.chassis import Failpoint
from wayline.contracts import events as e
from wayline.executor.hold.log_writer import LogWriter
from wayline.executor.perform.earlier_results import read_result
from wayline.journal import Fenced, Head, Job, JobLog, State
from wayline.journal.record import decode

POINTS = (Failpoint.EXECUTOR_RESULT_BEFORE, Failpoint.EXECUTOR_RESULT_AFTER)


class OvertakenLog(JobLog):
    """A log to which another writer has appended, which is known after a while."""

    def __init__(self) -> None:
        super().__init__(None, "acme", "j1")  # type: ignore[arg-type]
        self.asked, self.known = asyncio.Event(), asyncio.Event()

    async def _append(self, body: bytes, head: Head, *, expected: int) -> Head:
        self.asked.set()
        await self.known.wait()
        raise Fenced(self.subject)


async def test_an_append_after_one_that_was_fenced_unseen_is_fenced():
    log = OvertakenLog()
    writer = LogWriter(log, Head(1, State.ACTIVE, 2, "hash"), Job(job_id="j1", tenant="acme", seq=2))
    writer.note(e.JobHandedBack, reason="one")
    unseen = asyncio.ensure_future(writer.append(*POINTS))
    await log.asked.wait()
    writer.note(e.JobHandedBack, reason="two")
    following = asyncio.ensure_future(writer.append(*POINTS))

    log.known.set()
    ended = await asyncio.gather(unseen, following, return_exceptions=True)

    assert [type(error) for error in ended] == [Fenced, Fenced]
    with pytest.raises(Fenced):
        await writer.append(*POINTS)


async def test_a_result_is_looked_for_behind_the_beginning_of_its_step():
    log = MemoryLog()
    writer = LogWriter(log, Head(0, State.NEW, 0, "hash"), Job(job_id="j1", tenant="acme"))
    asked = {"attempt": 1, "provider": "p", "model": "m"}
    for step in (1, 2):
        writer.note(e.ModelRequested, step=step, attempt_id=f"a{step}", **asked)
        await writer.append(*POINTS)
        named = {"step": step, "call": "1", "tool": "look"}
        writer.note(e.ToolCompleted, **named, status="success", content=f"found {step}", duration_ms=1)
        await writer.append(*POINTS)

    found = await read_result(writer, 2, "1")

    assert found is not None and "found 2" in found.text
    assert log.parts_read == [range(2, 4)], "only what is behind the first record of the step"


class MemoryLog(JobLog):
    """A log in memory that notes which of its records are read."""

    def __init__(self) -> None:
        super().__init__(None, "acme", "j1")  # type: ignore[arg-type]
        self.stored: list[bytes] = []
        self.parts_read: list[range] = []

    async def _append(self, body: bytes, head: Head, *, expected: int) -> Head:
        self.stored.append(body)
        return head.stored(len(self.stored), "id")

    async def records(self, upto: int | None = None, *, after: int = 0) -> list[list[dict[str, Any]]]:
        self.parts_read.append(range(after, upto or 0))
        return [decode(body) for body in self.stored[after:upto]]
