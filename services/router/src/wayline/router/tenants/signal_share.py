"""Keeps each tenant within its share of the stream of signals, so that no tenant fills it for the others."""

from __future__ import annotations

import time

import structlog

from wayline.chassis import Bus, Periodic
from wayline.chassis.concurrency.each_alone import each_alone
from wayline.journal import ALL_OF_TENANT, SIGNALS, JobLog, State, signals_held
from wayline.telemetry import metrics

log = structlog.get_logger()

LOOK_EVERY_S = 0.5
"""A client can fill the share of a tenant in this time, and not the stream."""
SWEEP_EVERY_S = 10.0
"""How often the logs of a tenant with many signals are looked at for jobs that have ended."""
SWEEP_AT = 0.5
"""Of its share, from where on a tenant's jobs are looked at."""
SWEPT_AT_ONCE = 500
TENANTS_LOOKED_AT = 100
"""In one look."""


class SignalShare:
    """Looks at the tenants that signalled: forgets the signals of ended jobs, then the oldest beyond the share.

    NATS bounds the signals of one subject, and a client that may signal may name any job: so no limit of the stream
    holds for a tenant. What is forgotten is the tenant's own.
    """

    def __init__(self, bus: Bus, *, most: int) -> None:
        self._bus = bus
        self._most = most
        self._heard: dict[str, None] = {}
        self._swept: dict[str, float] = {}
        self._periodic = Periodic("shares of signals", self.look, every_s=LOOK_EVERY_S)
        self.start = self._periodic.start

    def note(self, tenant: str) -> None:
        """Note that a tenant has signalled."""
        self._heard[tenant] = None

    async def stop(self, grace_s: float) -> None:
        """End at once: what a look leaves undone is done by the next router's."""
        await self._periodic.stop(0)

    async def look(self) -> None:
        """Hold every tenant that has signalled since the last look to its share."""
        if not self._heard:
            return
        held = (await self._bus.js.stream_info(SIGNALS)).state.messages
        if held <= self._most * SWEEP_AT:
            # All of them together are fewer than one may have.
            self._heard.clear()
            return
        tenants = list(self._heard)[:TENANTS_LOOKED_AT]
        for tenant in tenants:
            del self._heard[tenant]
        await each_alone("share of signals", tenants, self._hold_to_share)

    async def _hold_to_share(self, tenant: str) -> None:
        counts = await signals_held(self._bus, tenant)
        if sum(counts.values()) > self._most:
            # At once: while the logs are looked at, more come.
            await self._forget_oldest(tenant, sum(counts.values()))
        elif sum(counts.values()) > self._most * SWEEP_AT and self._is_due(tenant):
            await self._sweep(tenant, counts)

    async def _forget_oldest(self, tenant: str, held: int) -> None:
        await self._bus.js.purge_stream(SIGNALS, subject=ALL_OF_TENANT.format(tenant=tenant), keep=self._most)
        metrics.signals_forgotten.labels("share").inc(held - self._most)
        log.warning(
            "a tenant's oldest signals are forgotten",
            tenant=tenant,
            held=held,
            most=self._most,
            variable="WAYLINE_SIGNALS_PER_TENANT_MAX",
        )

    def _is_due(self, tenant: str) -> bool:
        now = time.monotonic()
        if now - self._swept.get(tenant, -SWEEP_EVERY_S) < SWEEP_EVERY_S:
            self._heard[tenant] = None
            return False
        self._swept = {name: at for name, at in self._swept.items() if now - at < SWEEP_EVERY_S}
        self._swept[tenant] = now
        return True

    async def _sweep(self, tenant: str, counts: dict[str, int]) -> None:
        """Forget the signals of jobs that have ended: after the end nobody needs them."""
        for subject in sorted(counts, key=lambda one: -counts[one])[:SWEPT_AT_ONCE]:
            head = await JobLog(self._bus, tenant, subject.rpartition(".")[2]).last()
            if head is not None and head.state is State.ENDED:
                await self._bus.js.purge_stream(SIGNALS, subject=subject)
                metrics.signals_forgotten.labels("ended").inc(counts[subject])
