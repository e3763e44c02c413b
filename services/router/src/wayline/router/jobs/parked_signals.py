"""Signals of parked jobs: which of them wake a job, and those that came before it was parked."""

from __future__ import annotations

from wayline.chassis import Bus
from wayline.chassis.claim_check.claims import PayloadMissing
from wayline.contracts.errors import InvalidMessage
from wayline.contracts.jobs import Cancel, RunJob, Signal
from wayline.journal import Head, JobLog, State, bulk_read, leader_read
from wayline.router.sessions.turns import waits_for_turn
from wayline.router.ticket_lanes import TicketLanes


class ParkedSignals:
    """Queues parked jobs that have signals to read."""

    def __init__(self, bus: Bus, ticket_lanes: TicketLanes) -> None:
        self._bus = bus
        self._ticket_lanes = ticket_lanes

    async def queue(self, tenant: str, job_id: str, *, lane: str, at: int) -> RunJob:
        """Return the ticket of a job that goes on from its parked record, which is at this place."""
        return await self._ticket_lanes.queue(RunJob(tenant=tenant, lane=lane, job=job_id, at=at))

    async def ticket(self, tenant: str, job_id: str, head: Head) -> RunJob | None:
        """Return the ticket of a job that waits for its turn and was cancelled before its record was there."""
        cancelled_at = await self._cancelled_at(tenant, job_id)
        if not wakes(head, cancelled_at, early=True):
            return None
        last = await JobLog(self._bus, tenant, job_id).last()
        if last is None or last.sequence != head.sequence:
            return None
        return await self.queue(tenant, job_id, lane=head.lane, at=head.sequence)

    async def _cancelled_at(self, tenant: str, job_id: str) -> int:
        """Return the stream sequence of a job's first cancel; 0: there is none."""
        subject = f"signals.{tenant}.{job_id}"
        last = await leader_read(self._bus, "SIGNALS", subject)
        if last is None:
            return 0
        async for message in bulk_read(self._bus, "SIGNALS", subject, upto=last.sequence):
            try:
                read = await self._bus.read(Signal, message, subject)
            except (InvalidMessage, PayloadMissing):
                # It is put aside where it is delivered; to the job it means nothing.
                continue
            if isinstance(read.signal, Cancel):
                return int((message.headers or {})["Nats-Sequence"])
        return 0


def wakes(head: Head, signalled_at: int, *, early: bool) -> bool:
    """Return whether a signal at this place wakes a job that ends in this record; `early`: also before its turn.

    A job that waits for its turn reads everything else when its turn has come.
    """
    if head.state is not State.PARKED or signalled_at <= head.signals_seen:
        return False
    return early or not waits_for_turn(head)
