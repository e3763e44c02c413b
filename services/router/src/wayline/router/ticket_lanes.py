"""Where tickets are queued: before the others where they are their tenant's only one in a lane."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import structlog
from nats import errors as nats_errors

from wayline.chassis import Bus
from wayline.contracts.jobs import RunJob, backlog_of, waiting_of
from wayline.journal import Head
from wayline.router.fair_share.backlogs import Backlogs

log = structlog.get_logger()

COUNT_FRESH_S = 0.25
"""How long a tenant's count is used before it is read again; a tenant without tickets is never read."""
PUBLISHED_WITHIN_S = 1.0
"""How long a ticket that was counted here may not be in the stream yet."""
TENANTS_MAX = 10_000
"""Tenants whose counts are remembered."""


@dataclass
class _Tickets:
    """The tickets of one tenant by lane, as far as this router knows."""

    by_lane: dict[str, int] = field(default_factory=dict)
    queued_at: dict[str, float] = field(default_factory=dict)
    """When the last ticket was counted; without a lane whose tickets have ended."""
    read_at: float = 0.0


class TicketLanes:
    """Queues a tenant's first ticket in its lane, and its others behind it.

    Executors prefer the lane. What is counted decides about the order alone: any ticket may be in either.
    """

    def __init__(self, bus: Bus, backlogs: Backlogs | None = None) -> None:
        self._bus = bus
        self._backlogs = backlogs or Backlogs(bus)
        self._tenants: dict[str, _Tickets] = {}

    async def queue(self, ticket: RunJob) -> RunJob:
        """Return the ticket as it is to be queued, and count it."""
        lane = await self._count(ticket.tenant, ticket.lane)
        return ticket if lane == ticket.lane else ticket.model_copy(update={"lane": lane})

    async def queue_first(self, tenant: str, job_id: str, head: Head) -> RunJob:
        """Return the first ticket of a job as it is to be queued, with the record that it begins with."""
        lane = await self._count(tenant, head.lane)
        return RunJob(tenant=tenant, lane=lane, job=job_id, at=head.sequence, record=head.carried())

    async def _count(self, tenant: str, lane: str) -> str:
        """Count one more ticket, and return where it is queued: in its lane, in the lane's backlog, or to wait."""
        tickets = self._tenants.get(tenant)
        if tickets is None:
            if len(self._tenants) >= TENANTS_MAX:
                self._tenants.clear()
            tickets = self._tenants[tenant] = _Tickets()
        if tickets.by_lane.get(lane) and time.monotonic() - tickets.read_at >= COUNT_FRESH_S:
            await self._read(tenant, tickets)
        before = tickets.by_lane.get(lane, 0)
        tickets.by_lane[lane] = before + 1
        tickets.queued_at[lane] = time.monotonic()
        return await self._backlogs.place(tenant, lane) if before else lane

    def note_end(self, tenant: str) -> None:
        """Count an ended job no longer."""
        tickets = self._tenants.get(tenant)
        if tickets is None:
            return
        lanes = [lane for lane, count in tickets.by_lane.items() if count]
        if len(lanes) == 1:
            tickets.by_lane[lanes[0]] -= 1
            if not tickets.by_lane[lanes[0]]:
                tickets.queued_at.pop(lanes[0], None)
        else:
            # Which lane it was in is not known: the next ticket has them counted.
            tickets.read_at = 0.0

    async def _read(self, tenant: str, tickets: _Tickets) -> None:
        """Count what the stream holds: jobs that other routers began, ended and parked are in it, too."""
        tickets.read_at = time.monotonic()
        try:
            state = (await self._bus.js.stream_info("RUN", subjects_filter=f"jobs.run.*.{tenant}")).state
        except (nats_errors.Error, TimeoutError) as error:
            log.warning("tickets not counted", tenant=tenant, why=type(error).__name__)
            return
        found = state.subjects or {}
        for lane in tickets.by_lane:
            stored = sum(found.get(f"jobs.run.{name}.{tenant}", 0) for name in _names(lane))
            on_its_way = tickets.read_at - tickets.queued_at.get(lane, 0.0) < PUBLISHED_WITHIN_S
            tickets.by_lane[lane] = max(stored, int(on_its_way))


def _names(lane: str) -> tuple[str, str, str]:
    return lane, backlog_of(lane), waiting_of(lane)
