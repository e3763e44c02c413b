"""Signals on their way to the bus, no more of one tenant than its share."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import TypeVar

from wayline.chassis import Bus
from wayline.chassis.claim_check.claims import PayloadMissing
from wayline.contracts.errors import InvalidMessage
from wayline.contracts.jobs import DecideApproval, Signal
from wayline.gateway.errors import TooManySignals
from wayline.journal import bulk_read, leader_read, signals_held

S = TypeVar("S", Signal, DecideApproval)

FRESH_S = 5.0
"""How long a count is believed that is below the share; what is sent here meanwhile is added."""
COUNTED_AGAIN_S = 1.0
"""How soon one at the share is counted again."""
REMEMBERED_MAX = 10_000


@dataclass
class _Count:
    held: int
    at: float


class Signals:
    """Publishes signals; refuses what would fill the stream for other tenants."""

    def __init__(self, bus: Bus, *, per_tenant_max: int) -> None:
        self._bus = bus
        self._most = per_tenant_max
        self._counts: dict[str, _Count] = {}

    async def send(self, signal: Signal | DecideApproval) -> None:
        """Store a signal. Raises TooManySignals, Full or Unavailable."""
        count = await self._count(signal.tenant)
        if count.held >= self._most:
            raise TooManySignals(tenant=signal.tenant, most=self._most)
        count.held += 1
        await self._bus.publish(signal, msg_id=signal.msg_id)

    async def unheard(self, kind: type[S], tenant: str, job_id: str, *, after: int) -> AsyncGenerator[S]:
        """Yield what a job was told after a place in the stream, in order. Raises Unavailable."""
        subject = kind.subject_template.format(tenant=tenant, job_id=job_id)
        last = await leader_read(self._bus, "SIGNALS", subject)
        if last is None or last.sequence <= after:
            return
        async for message in bulk_read(self._bus, "SIGNALS", subject, after=after, upto=last.sequence):
            try:
                yield await self._bus.read(kind, message, subject)
            except (InvalidMessage, PayloadMissing):
                # The router puts a copy aside; to the job it means nothing.
                continue

    async def _count(self, tenant: str) -> _Count:
        known = self._counts.get(tenant)
        if known is not None:
            age_s = time.monotonic() - known.at
            if age_s < (FRESH_S if known.held < self._most else COUNTED_AGAIN_S):
                return known
        if len(self._counts) >= REMEMBERED_MAX:
            self._counts.clear()
        held = sum((await signals_held(self._bus, tenant)).values())
        self._counts[tenant] = _Count(held, time.monotonic())
        return self._counts[tenant]
