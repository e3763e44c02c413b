"""A durable subscriber to a tenant's finished jobs: each comes until its handler has returned."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from faststream.nats import NatsBroker
from nats import errors as nats_errors

from wayline.contracts import headers as h
from wayline.contracts.errors import Problem, Unavailable, WaylineError, raised
from wayline.contracts.finished_jobs import (
    BATCH_MAX,
    REASON_MAX_CHARS,
    REPORTED_MAX,
    FailedDelivery,
    FinishedBatch,
    FinishedJob,
    TakeFinished,
)
from wayline.sdk.bus_program import BusProgram
from wayline.sdk.connection import bus_broker, chosen_tenant

log = logging.getLogger("wayline.sdk")

ASK_EVERY_S = 1.0
"""How long to wait before asking again where no job was due, or nobody answered."""
ANSWER_WITHIN_S = 10.0

Handler = Callable[[FinishedJob], Awaitable[None]]
H = TypeVar("H", bound=Handler)


class FinishedJobs(BusProgram):
    """Hands a tenant's finished jobs to a handler, under a name that outlives the process.

    finished = FinishedJobs("billing")

    @finished.handler
    async def bill(job: FinishedJob) -> None: ...

    finished.run()
    """

    def __init__(
        self,
        durable: str,
        *,
        broker: NatsBroker | None = None,
        tenant: str | None = None,
        ack_wait_s: float = 60.0,
        deliveries_max: int = 5,
    ) -> None:
        self.durable = durable
        self.tenant = chosen_tenant(tenant)
        self.broker = broker or bus_broker()
        # Refuses wrong values here and not while jobs wait.
        self._ask = TakeFinished(
            tenant=self.tenant, follower=durable, ack_wait_s=ack_wait_s, deliveries_max=deliveries_max
        )
        self._handler: Handler | None = None
        self._done: list[str] = []
        self._failed: list[FailedDelivery] = []
        self._stopping = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    def handler(self, function: H) -> H:
        """Have a function called with each job. Where it raises, the job comes again, later each time."""
        if self._handler is not None:
            raise TypeError(f"{self.durable} has a handler already")
        self._handler = function
        return function

    async def start(self) -> None:
        """Begin to follow. Jobs that end from the first time on are kept for this name, also while nobody asks."""
        if self._handler is None:
            raise TypeError(f"{self.durable} has no handler")
        with suppress(WaylineError, nats_errors.Error, TimeoutError):
            await self._take(limit=0)
        self._following = asyncio.create_task(self._follow(self._handler), name=f"following as {self.durable}")
        log.info("following finished jobs as %s", self.durable)

    async def drain(self) -> None:
        """Take no more jobs, end those in hand, and say what became of them."""
        self._stopping.set()
        if self._following is not None:
            await self._following
        if self._done or self._failed:
            with suppress(WaylineError, nats_errors.Error, TimeoutError):
                await self._take(limit=0)

    async def _follow(self, handler: Handler) -> None:
        while not self._stopping.is_set():
            try:
                jobs = await self._take(limit=BATCH_MAX)
            except (WaylineError, nats_errors.Error, TimeoutError) as error:
                log.warning("finished jobs cannot be asked for: %s", str(error) or type(error).__name__)
                jobs = ()
            if jobs:
                await asyncio.gather(*(self._handle(handler, job) for job in jobs))
            else:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), ASK_EVERY_S)

    async def _handle(self, handler: Handler, job: FinishedJob) -> None:
        try:
            await handler(job)
        except Exception as error:
            log.exception("%s could not handle the job %s", self.durable, job.job_id)
            reason = f"{type(error).__name__}: {error}"[:REASON_MAX_CHARS]
            self._failed.append(FailedDelivery(job_id=job.job_id, reason=reason))
        else:
            self._done.append(job.job_id)

    async def _take(self, *, limit: int) -> tuple[FinishedJob, ...]:
        """Say what became of jobs and return others; what could not be said is said again."""
        done, failed = self._done[:REPORTED_MAX], self._failed[:REPORTED_MAX]
        ask = self._ask.model_copy(update={"done": tuple(done), "failed": tuple(failed), "limit": limit})
        nc = await self.broker.connect()
        headers = {h.SCHEMA: ask.schema_id(), h.TENANT: self.tenant}
        try:
            answer = await nc.request(ask.subject, ask.to_wire(), timeout=ANSWER_WITHIN_S, headers=headers)
        except nats_errors.NoRespondersError:
            raise Unavailable("tracing", detail="nobody hands out finished jobs now") from None
        if h.ERROR in (answer.headers or {}):
            raise raised(Problem.model_validate_json(answer.data))
        del self._done[: len(done)], self._failed[: len(failed)]
        return FinishedBatch.model_validate_json(answer.data, extra="ignore").jobs
