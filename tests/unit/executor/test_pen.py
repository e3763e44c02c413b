"""A process's jobs append in turn."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any, cast

from wayline.chassis import Failpoint
from wayline.contracts.events import CancelRequested
from wayline.executor.pen import APPENDS_AT_ONCE, Pen, turns
from wayline.journal import Head, Job, JobLog, State

JOBS = 3 * APPENDS_AT_ONCE
HEAD = Head(1, State.ACTIVE, 2, "hash")


@dataclass
class Stream:
    """Stands where the bus is: keeps who is appending, and lets one through at a time."""

    under_way: list[str] = field(default_factory=list)
    most: int = 0
    done: list[str] = field(default_factory=list)


@dataclass
class Log:
    stream: Stream
    job_id: str
    tenant: str = "acme"

    async def append(self, events: list[Any], head: Head, **_: Any) -> Head:
        self.stream.under_way.append(self.job_id)
        self.stream.most = max(self.stream.most, len(self.stream.under_way))
        for _ in range(5):
            await asyncio.sleep(0)
        self.stream.under_way.remove(self.job_id)
        self.stream.done.append(self.job_id)
        return replace(head, sequence=head.sequence + 1, seq=events[-1].seq)


async def test_a_burst_appends_first_come_first_served_a_few_at_a_time():
    stream, whose = Stream(), turns()
    jobs = [f"j{n}" for n in range(JOBS)]
    pens = [Pen(cast(JobLog, Log(stream, job)), HEAD, Job(job_id=job, seq=2), turns=whose) for job in jobs]
    for pen in pens:
        pen.note(CancelRequested)

    points = Failpoint.EXECUTOR_RESULT_BEFORE, Failpoint.EXECUTOR_RESULT_AFTER
    await asyncio.gather(*(pen.append(*points) for pen in pens))

    assert stream.most == APPENDS_AT_ONCE
    assert stream.done == jobs
