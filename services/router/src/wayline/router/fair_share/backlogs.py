"""Where a tenant's further tickets are queued: in the lane's backlog, or with those that wait for their tenant's turn.

A backlog is one queue, so it is one tenant's. Who comes while another tenant has tickets in it waits for turns instead.
While nobody else waits that costs a tenant nothing: its tickets are where they were before lanes were shared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog
from nats import errors as nats_errors
from nats.js import errors as js_errors

from wayline.chassis import Bus
from wayline.chassis.concurrency.single_flight import SingleFlight
from wayline.chassis.topology import RUN_BACKLOGS, RUN_WAITING, Consumer
from wayline.contracts import headers as h
from wayline.contracts.errors import Retry
from wayline.contracts.jobs import backlog_of, waiting_of
from wayline.journal import leader_next

log = structlog.get_logger()

STREAM = "RUN"
FRESH_S = 0.25
"""How long what was read of a lane is believed by a tenant that has the backlog."""
DOUBTED_AFTER_S = 0.02
"""How long it is believed by one that would have to wait: the backlog may have become empty."""
UNREAD_S = 5.0
"""How long lanes are not read after the bus has not answered: no job waits for that again and again."""
ROOM_KEPT = 0.2
"""This part of the stream is left to tickets that executors take by themselves: to give a turn takes room for one."""
OWNED_FROM = 16
"""Tickets in a backlog beyond which it is the queue of the tenant that comes first in it."""


@dataclass
class LaneState:
    """What was read of a lane, and what was queued in it here since."""

    backlog: int
    """Tickets in the backlog that no executor has taken."""
    first: str | None
    """Whose ticket comes first in the backlog."""
    waiting: Mapping[str, int]
    """Tickets that wait for a turn, by tenant."""
    waiting_since: int
    """Such tickets that were queued here since."""
    nearly_full: bool
    read_at: float

    def goes_to_backlog(self, tenant: str) -> bool:
        """Return whether a ticket of this tenant is queued in the backlog."""
        if self.nearly_full or not (self.backlog or self.waiting or self.waiting_since):
            return True
        own = self.first == tenant and tenant not in self.waiting
        return own and (self.backlog > OWNED_FROM or not (self.waiting or self.waiting_since))


class Backlogs:
    """Chooses between the backlog of a lane and the tickets that wait."""

    def __init__(self, bus: Bus, *, shared: bool = True) -> None:
        self._bus = bus
        self._shared = shared
        self._lanes: dict[str, LaneState] = {}
        self._reads = SingleFlight[str, LaneState]()
        self._unread_until = 0.0
        self.waits: Callable[[], None] = lambda: None
        """Called when a ticket is queued that waits for a turn."""

    async def place(self, tenant: str, lane: str) -> str:
        """Return where a ticket is queued whose tenant has another one in the lane."""
        state = await self._state(lane, FRESH_S) if self._shared else None
        if state is not None and not state.goes_to_backlog(tenant):
            state = await self._state(lane, FRESH_S if state.waiting else DOUBTED_AFTER_S)
        if state is None or state.goes_to_backlog(tenant):
            if state is not None:
                state.backlog += 1
                state.first = state.first or tenant
            return backlog_of(lane)
        state.waiting_since += 1
        self.waits()
        return waiting_of(lane)

    async def _state(self, lane: str, fresh_s: float) -> LaneState | None:
        """Return what is known of a lane; None: nothing can be read, or there is nowhere to wait."""
        if time.monotonic() < self._unread_until:
            return None
        state = self._lanes.get(lane)
        if state is not None and time.monotonic() - state.read_at < fresh_s:
            return state
        try:
            # One read for all tickets that are queued beside each other.
            state = await self._reads.fetch(lane, lambda: read_lane(self._bus, lane))
        except js_errors.NotFoundError:
            # Before `wayline migrate` there is no place to wait.
            return None
        except (Retry, nats_errors.Error, TimeoutError) as error:
            # Also what a cluster says that chooses a leader: no job fails because its place could not be chosen well.
            log.warning("lane not read", lane=lane, why=type(error).__name__)
            self._unread_until = time.monotonic() + UNREAD_S
            return None
        self._lanes[lane] = state
        return state


async def read_lane(bus: Bus, lane: str) -> LaneState:
    """Read how many tickets are in a lane's backlog and wait for turns. Raises NotFoundError without such a lane."""
    at = time.monotonic()
    waiting, nearly_full = {}, False
    if (await bus.js.consumer_info(STREAM, _of(RUN_WAITING, lane).name)).num_pending:
        waiting, nearly_full = await waiting_tickets(bus, lane)
    backlog = await bus.js.consumer_info(STREAM, _of(RUN_BACKLOGS, lane).name)
    count = backlog.num_pending or 0
    delivered = backlog.delivered.stream_seq if backlog.delivered else 0
    first = await first_tenant(bus, lane, after=delivered) if count else None
    return LaneState(count, first, waiting, 0, nearly_full, at)


async def waiting_tickets(bus: Bus, lane: str) -> tuple[dict[str, int], bool]:
    """Return how many tickets of each tenant wait for a turn, and whether the stream is nearly full."""
    info = await bus.js.stream_info(STREAM, subjects_filter=f"jobs.run.{waiting_of(lane)}.*")
    found = {subject.rpartition(".")[2]: count for subject, count in (info.state.subjects or {}).items()}
    most = info.config.max_bytes or 0
    return found, most > 0 and info.state.bytes > most * (1 - ROOM_KEPT)


async def first_tenant(bus: Bus, lane: str, *, after: int) -> str | None:
    """Return whose ticket comes first in a lane's backlog behind a place in the stream."""
    found = await leader_next(bus, STREAM, f"jobs.run.{backlog_of(lane)}.*", start=after + 1)
    return None if found is None else found.headers.get(h.TENANT)


def _of(consumers: Mapping[Consumer, Consumer], lane: str) -> Consumer:
    return next(found for front, found in consumers.items() if front.name == lane)
