"""Places of queued jobs, asked of tracing for all followed jobs at once."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from wayline.chassis import Bus
from wayline.contracts.errors import WaylineError
from wayline.contracts.jobs import QueuePlace
from wayline.contracts.traces import FindQueuePlaces, QueuePlaces
from wayline.journal import Tell

log = structlog.get_logger()

LOOK_EVERY_S = 2.0
BEGUN_WITHIN_S = 1.0
"""A job that begins sooner is not asked after."""
JOBS_AT_ONCE = 200


class QueueWatch:
    """Asks every `LOOK_EVERY_S` for the places of followed jobs that have not begun; without any it asks nothing."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._jobs: set[JobWatch] = set()
        self._asking: asyncio.Task[None] | None = None

    def watch(self, tenant: str, job_id: str) -> JobWatch:
        """Return the watch of one job."""
        return JobWatch(self, tenant, job_id)

    def begin(self, job: JobWatch) -> None:
        self._jobs.add(job)
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask_on(), name="queue places")

    def end(self, job: JobWatch) -> None:
        self._jobs.discard(job)
        if self._asking is not None and not self._jobs:
            self._asking.cancel()
            self._asking = None

    async def _ask_on(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            tenants: dict[str, list[JobWatch]] = defaultdict(list)
            for job in self._jobs:
                if time.monotonic() - job.since >= BEGUN_WITHIN_S:
                    tenants[job.tenant].append(job)
            for tenant, jobs in tenants.items():
                for at in range(0, len(jobs), JOBS_AT_ONCE):
                    await self._ask(tenant, jobs[at : at + JOBS_AT_ONCE])

    async def _ask(self, tenant: str, jobs: list[JobWatch]) -> None:
        asked = FindQueuePlaces(tenant=tenant, job_ids=tuple(sorted({job.job_id for job in jobs})))
        try:
            found = (await self._bus.ask(asked, QueuePlaces)).places
        except WaylineError as error:
            log.info("places in the queue are not known", tenant=tenant, why=str(error))
            return
        places = {place.job_id: place for place in found}
        for job in jobs:
            if job in self._jobs and job.job_id in places:
                job.note(places[job.job_id])


class JobWatch:
    """Reports the place of one job to its follower, each time that it has changed."""

    def __init__(self, queues: QueueWatch, tenant: str, job_id: str) -> None:
        self.tenant = tenant
        self.job_id = job_id
        self.since = time.monotonic()
        self._queues = queues
        self._place: QueuePlace | None = None
        self._tell: Tell | None = None

    @contextmanager
    def report_places(self, tell: Tell) -> Iterator[None]:
        """Call `tell` with each new place of the job, until the block or the watch ends."""
        self._tell = tell
        self._queues.begin(self)
        try:
            yield
        finally:
            self.end()

    def end(self) -> None:
        """Look no more."""
        self._queues.end(self)

    def note(self, place: QueuePlace) -> None:
        if place != self._place and self._tell is not None:
            self._place = place
            self._tell(place)
