"""Wakes jobs that this process has parked for a provider, once its model is known to answer again."""

from __future__ import annotations

import asyncio
from collections import defaultdict

import structlog

from wayline.chassis import Bus, stopped
from wayline.chassis.providers import subject
from wayline.contracts.errors import Retry
from wayline.contracts.jobs import RunJob, waiting_of

log = structlog.get_logger()

REMEMBERED_MAX = 10_000
"""Jobs that one process wakes; what is beyond, or parked by a process that is gone, is woken by its schedule alone."""
PAUSE_S = 0.02
"""Between two of them: a provider that has just come back is not asked by all at once."""


class ProviderWaits:
    """The tickets of jobs parked for a provider, by the subject of their model's state."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._tickets: defaultdict[str, dict[tuple[str, str], RunJob]] = defaultdict(dict)
        self._waking: set[asyncio.Task[None]] = set()

    def remember(self, model: str, ticket: RunJob) -> None:
        """Remember a job that has just parked, by the ticket that lets it go on."""
        waiting, job = self._tickets[subject(model)], (ticket.tenant, ticket.job)
        # A job that has parked again has another ticket now.
        if job in waiting or sum(map(len, self._tickets.values())) < REMEMBERED_MAX:
            waiting[job] = ticket

    def wake(self, key: str) -> bool:
        """Begin to queue all jobs that wait for a model; return whether there is any."""
        waiting = self._tickets.pop(key, None)
        if not waiting:
            return False
        waking = asyncio.create_task(self._wake(list(waiting.values())))
        self._waking.add(waking)
        waking.add_done_callback(self._waking.discard)
        return True

    async def stop(self) -> None:
        """End at once: the jobs that are left are woken by their schedules."""
        await stopped(*self._waking)

    async def _wake(self, tickets: list[RunJob]) -> None:
        """Queue jobs one after another. A ticket of a job that has gone on meanwhile is stale, and does nothing.

        Of each tenant one is queued in the lane: the others wait for its turns, so that a thousand of them which wake
        together are not before the jobs of others.
        """
        in_lane = set[tuple[str, str]]()
        for ticket in tickets:
            try:
                if (ticket.tenant, ticket.lane) in in_lane:
                    # Under another id: a router that gives no turns wakes the job by its schedule, under the usual one.
                    waiting = ticket.model_copy(update={"lane": waiting_of(ticket.lane)})
                    await self._bus.publish(waiting, msg_id=f"{ticket.msg_id}:waits")
                else:
                    in_lane.add((ticket.tenant, ticket.lane))
                    await self._bus.publish(ticket, msg_id=ticket.msg_id)
            except Retry as error:
                log.warning("jobs wait for their schedule", why=str(error))
                return
            await asyncio.sleep(PAUSE_S)
