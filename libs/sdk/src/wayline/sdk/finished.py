"""A durable subscriber to a tenant's finished jobs: each comes until its handler has returned."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from faststream.nats import NatsBroker
from nats import errors as nats_errors
from pydantic import ValidationError

from wayline.contracts import headers as h
from wayline.contracts.base import explain
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
from wayline.sdk.answers import clean
from wayline.sdk.bus_program import BusProgram
from wayline.sdk.connection import bus_broker, chosen_tenant

log = logging.getLogger("wayline.sdk")

ASK_EVERY_S = 1.0
"""How long to wait before asking again where no job was due, or nobody answered."""
ANSWER_WITHIN_S = 10.0
HANDLER_SHARE = 0.9
"""Of the time after which a job comes again: a handler is cut before, so that no two have a job at once."""
CANCEL_WITHIN_S = 1.0
"""How long a handler that is cut may take to end."""

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
        drain_grace_s: float = 20.0,
    ) -> None:
        """Make a follower. Raises ValueError for a name or a limit that the bus does not take."""
        self.durable = durable
        self.tenant = chosen_tenant(tenant)
        self._ask = _checked(self.tenant, follower=durable, ack_wait_s=ack_wait_s, deliveries_max=deliveries_max)
        self.broker = broker or bus_broker()
        self._handler_s = ack_wait_s * HANDLER_SHARE
        self._drain_grace_s = drain_grace_s
        self._handler: Handler | None = None
        self._done: list[str] = []
        self._failed: list[FailedDelivery] = []
        self._stopping = asyncio.Event()
        self._in_hand: set[asyncio.Task[None]] = set()
        self._following: asyncio.Task[None] | None = None

    def handler(self, function: H) -> H:
        """Have an async function called with each job. Where it raises, the job comes again, later each time."""
        if self._handler is not None:
            raise TypeError(f"{self.durable} has a handler already")
        if not (inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)):
            raise TypeError(
                f"the handler of {self.durable} must be an async def: await asyncio.to_thread(...) within it for work "
                "that blocks"
            )
        self._handler = function
        return function

    async def start(self) -> None:
        """Begin to follow. Jobs that end from the first time on are kept for this name, also while nobody asks."""
        if self._handler is None:
            raise TypeError(f"{self.durable} has no handler: decorate an async def with `handler`")
        with suppress(WaylineError, nats_errors.Error, TimeoutError):
            await self._take(limit=0)
        self._following = asyncio.create_task(self._follow(self._handler), name=f"following as {self.durable}")
        log.info("following finished jobs as %s", self.durable)

    async def drain(self) -> None:
        """Take no more jobs, end those in hand for as long as the grace lasts, and say what became of them."""
        self._stopping.set()
        if self._following is not None:
            await self._following
        if self._in_hand:
            _, late = await asyncio.wait(self._in_hand, timeout=self._drain_grace_s)
            for task in late:
                log.error("%s did not end within %s s", task.get_name(), self._drain_grace_s)
                task.cancel("its process was stopped")
            if late:
                # Each notes what became of its job.
                await asyncio.wait(late, timeout=CANCEL_WITHIN_S)
        if (self._done or self._failed) and await self.is_connected():
            with suppress(WaylineError, nats_errors.Error, TimeoutError):
                await self._take(limit=0)

    async def _follow(self, handler: Handler) -> None:
        """Fill each slot as soon as it is free; a request for jobs says what became of earlier ones."""
        while not self._stopping.is_set():
            free = BATCH_MAX - len(self._in_hand)
            jobs = await self._take_patiently(limit=free)
            for job in jobs:
                task = asyncio.create_task(self._handle(handler, job), name=f"the handler of {self.durable}")
                self._in_hand.add(task)
                task.add_done_callback(self._in_hand.discard)
            await self._wait_for_change(None if len(jobs) == free else ASK_EVERY_S)

    async def _wait_for_change(self, within_s: float | None) -> None:
        """Wait until a job in hand has ended, or the process stops, or the time is over."""
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({stopping, *self._in_hand}, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()

    async def _handle(self, handler: Handler, job: FinishedJob) -> None:
        """Have the handler called, and note what became of the job."""
        limit = asyncio.timeout(self._handler_s)
        try:
            async with limit:
                await handler(job)
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            log.exception("%s could not handle the job %s", self.durable, job.job_id)
            why = f"the handler took longer than {self._handler_s:g} s"
            if not limit.expired():
                why = f"{type(error).__name__}: {error}"
            self._failed.append(FailedDelivery(job_id=job.job_id, reason=clean(why)[:REASON_MAX_CHARS]))
        else:
            self._done.append(job.job_id)

    async def _take_patiently(self, *, limit: int) -> tuple[FinishedJob, ...]:
        try:
            return await self._take(limit=limit)
        except (WaylineError, nats_errors.Error, TimeoutError) as error:
            log.warning("finished jobs cannot be asked for: %s", str(error) or type(error).__name__)
            return ()

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


def _checked(tenant: str, **wanted: Any) -> TakeFinished:
    """Return the request for jobs: wrong values are refused here and not while jobs wait."""
    try:
        return TakeFinished(tenant=tenant, **wanted)
    except ValidationError as error:
        names = "a name has small letters, digits and hyphens, 64 at most, such as 'billing'"
        raise ValueError(f"finished jobs cannot be followed so: {explain(error)}; {names}") from None
