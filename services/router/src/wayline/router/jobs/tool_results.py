"""Results of callers' own tools as they come over the bus: what cannot count is refused, and its sender told."""

from __future__ import annotations

import structlog

from wayline.chassis import Bus, Delivery
from wayline.chassis.claim_check.claims import PayloadMissing
from wayline.contracts.errors import InvalidMessage
from wayline.contracts.jobs import Signal, ToolResult, ToolResults
from wayline.journal import ClientCalls, JobLog, bulk_read

log = structlog.get_logger()


class ClientResults:
    """Compares results with the logs of their jobs, before a job is woken."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def require_usable(self, told: ToolResults, *, tenant: str, job_id: str, delivery: Delivery) -> None:
        """Pass where some of the results count, or were given before. Raises NotFound, or ResultConflict.

        A message of which some count wakes its job: what is wrong with the others is the operator's to read.
        """
        job_log = JobLog(self._bus, tenant, job_id)
        head = await job_log.last()
        calls = await ClientCalls.of(job_log.read())
        before = await self._before(tenant, job_id, after=head.signals_seen if head else 0, upto=delivery.sequence - 1)
        new, refused = calls.sorted_out(told.results, told=before)
        if refused and not new:
            raise refused[0]
        for why in refused:
            log.warning("a result of a tool cannot count", tenant=tenant, job=job_id, why=str(why))

    async def _before(self, tenant: str, job_id: str, *, after: int, upto: int) -> dict[str, ToolResult]:
        """Return the results that came first and that the job has not heard yet."""
        found: dict[str, ToolResult] = {}
        if upto <= after:
            return found
        subject = f"signals.{tenant}.{job_id}"
        async for message in bulk_read(self._bus, "SIGNALS", subject, after=after, upto=upto):
            try:
                read = await self._bus.read(Signal, message, subject)
            except (InvalidMessage, PayloadMissing):
                continue
            for result in read.signal.results if isinstance(read.signal, ToolResults) else ():
                found.setdefault(result.key, result)
        return found
