"""The jobs of a request to forget: they are stopped, and their words are sampled before they are erased."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import orjson

from wayline.chassis import Bus
from wayline.chassis.connection.bus import AWAY
from wayline.contracts.chat import TextPart
from wayline.contracts.errors import Retry, Unavailable
from wayline.contracts.events import JobSubmitted
from wayline.contracts.forgetting import SAMPLE_CHARS_MAX, SAMPLE_CHARS_MIN, SAMPLES_MAX
from wayline.contracts.jobs import Cancel, Signal
from wayline.journal import JobLog, State, leader_next
from wayline.router.forgetting.forget_table import JobToStop
from wayline.store import Record

READ_BESIDE = 16
LOGS_SAMPLED_MAX = 40
"""Logs that are looked at for texts."""
SUBMISSIONS_MAX = 10_000
"""Of a tenant, looked at for those of a user."""
REASON = "its user, or the job, is being forgotten"


class JobsToEnd:
    """Looks at logs, and signals jobs that have not ended."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def stop(self, row: Record, jobs: Sequence[JobToStop]) -> list[str]:
        """Return the jobs that have not ended or are not settled, and cancel those that run."""
        beside = asyncio.Semaphore(READ_BESIDE)

        async def is_open(job: JobToStop) -> bool:
            async with beside:
                head = await JobLog(self._bus, row["tenant"], job.job_id).last()
                if head is None:
                    # Its log has expired or is erased already; else it is being begun.
                    return not (job.is_settled or job.is_old)
                if head.state is State.ENDED:
                    return not job.is_settled
                # Once a round: a repeat means nothing to the job.
                cancel = Signal(tenant=row["tenant"], job_id=job.job_id, signal=Cancel(reason=REASON, by="forget"))
                msg_id = f"{row['tenant']}/{job.job_id}:{row['forget_id']}:{row['round']}"
                await self._bus.publish(cancel, msg_id=msg_id)
                return True

        found = await asyncio.gather(*(is_open(job) for job in jobs))
        return [job.job_id for job, still_open in zip(jobs, found, strict=True) if still_open]

    async def last_submission(self) -> int:
        """Return the sequence of the last submission that the bus has taken. Raises Unavailable."""
        try:
            return (await self._bus.js.stream_info("SUBMIT")).state.last_seq
        except AWAY as error:
            raise Unavailable("the bus", detail=f"SUBMIT: {type(error).__name__}") from None

    async def has_submissions(self, row: Record) -> bool:
        """Return whether a submission of the user, from before the request, is still to be admitted."""
        subject, start = f"jobs.submit.{row['tenant']}", 1
        needle = b'"user_id":' + orjson.dumps(row["user_id"])
        for _ in range(SUBMISSIONS_MAX):
            stored = await leader_next(self._bus, "SUBMIT", subject, start=start)
            if stored is None or stored.sequence > row["submitted_upto"]:
                return False
            if needle in stored.body.replace(b'": "', b'":"'):
                return True
            start = stored.sequence + 1
        return False

    async def samples(self, tenant: str, jobs: Sequence[str]) -> list[str]:
        """Return beginnings of what was asked of jobs: what is searched for once it is erased."""
        found: list[str] = []
        for job_id in jobs[:LOGS_SAMPLED_MAX]:
            log = JobLog(self._bus, tenant, job_id)
            try:
                if await log.last() is None:
                    continue
                first = (await log.first())[0]
            except Retry:
                # A large field of it is gone: there are other jobs to sample.
                continue
            if isinstance(first, JobSubmitted):
                texts = [part.text for part in first.job.parts() if isinstance(part, TextPart)]
                found += [
                    text[:SAMPLE_CHARS_MAX] for text in texts if len(text) >= SAMPLE_CHARS_MIN and "\0" not in text
                ]
            if len(found) >= SAMPLES_MAX:
                break
        return found[:SAMPLES_MAX]
