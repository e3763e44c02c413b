"""Each tenant's share of the bytes that the bus stores and of the unfinished jobs: beyond it, no new job begins."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass

import asyncpg
import structlog
from nats.js.api import StreamState

from wayline.chassis import Bus, Periodic
from wayline.chassis.connection.bus import AWAY as BUS_AWAY
from wayline.chassis.topology import PAYLOADS
from wayline.contracts.errors import Reject, Unavailable
from wayline.store import PostgresUnavailable, Store

log = structlog.get_logger()

TENANT_FULL = "tenant_full"
EVERY_S = 2.0
"""How often sums are written, and how long a read value is used."""
FULL_FRESH_S = 0.5
"""How long the number of jobs of a tenant with too many is used: they end all the time."""
KEPT_DAYS = 31
"""Logs and payloads are kept 30 days, and the first of them began in the middle of a day."""
UNFINISHED_BYTES = 32 * 1024
"""Counted for each unfinished job beside the bytes it has stored: it will store more."""
OVER = 1.25
"""How many times its share a tenant may store before its running jobs must end and refused ones get no log."""
TICKET_WITHIN_S = 5.0
"""How long an admitted job may be without a ticket; for so long it is counted beside the tickets."""
REMEMBERED_MAX = 10_000
POSTGRES_AWAY = (asyncpg.PostgresError, PostgresUnavailable, OSError, TimeoutError)


@dataclass(frozen=True, slots=True)
class ShareLimits:
    """The most that one tenant may have."""

    stored_bytes: int
    unfinished: int


class Shares:
    """Knows what each tenant stores on the bus and how many jobs it has unfinished, and refuses more than its share.

    NATS bounds the bytes of a stream, not those of a tenant in it. So each service counts the bytes that it stores and
    reports them to the router, which keeps a sum for each day. A single tenant's sums are read only when all tenants
    together have more than one may have.
    """

    def __init__(self, bus: Bus, store: Store, limits: ShareLimits) -> None:
        self._bus = bus
        self._store = store
        self._limits = limits
        self._read_at = -EVERY_S
        self._all_stored = self._all_unfinished = 0
        self._sums: dict[str, tuple[float, int]] = {}
        self._writing: dict[str, int] = {}
        """Bytes on their way into the sums: counted here until they are there."""
        self._jobs: dict[str, tuple[float, int]] = {}
        self._begun: dict[str, deque[float]] = {}
        """When jobs were admitted whose tickets may not be counted yet."""
        self._counting = asyncio.Lock()
        self._writer = Periodic("sums of stored bytes", self.write, every_s=EVERY_S, last_turn=True)

    def note_stored(self, tenant: str, size: int) -> None:
        """Count bytes that another service has stored."""
        self._bus.stored.note(tenant, size)

    async def require(self, tenant: str) -> None:
        """Admit and count a job while its tenant is within its share. Raises Reject."""
        why = await self.why_full(tenant)
        if why is not None:
            raise Reject(why, code=TENANT_FULL, status=429)
        self._begun.setdefault(tenant, deque()).append(time.monotonic())

    async def why_full(self, tenant: str) -> str | None:
        """Return why a tenant may begin no more jobs for now, and what to do; None: it may."""
        await self._refresh()
        limits, begun = self._limits, len(self._begun.get(tenant, ()))
        few = self._all_unfinished + begun < limits.unfinished
        if few and self._is_little(self._all_stored + self._bus.stored.total, self._all_unfinished):
            return None
        stored, unfinished = await self._stored(tenant), await self._unfinished(tenant)
        if unfinished + len(self._begun.get(tenant, ())) >= limits.unfinished:
            return (
                f"{unfinished:,} jobs of tenant {tenant!r} wait or run: submit more when some of these have ended, or "
                "raise WAYLINE_ROUTER_UNFINISHED_PER_TENANT_MAX"
            )
        if not self._is_little(stored, unfinished):
            return (
                f"the job logs and payloads of tenant {tenant!r} take {stored:,} bytes, and it may have "
                f"{limits.stored_bytes:,} with {UNFINISHED_BYTES:,} for each of {unfinished:,} jobs that are not done: "
                "wait until older ones expire after 30 days, or raise WAYLINE_ROUTER_STORED_PER_TENANT_MAX_BYTES"
            )
        return None

    def _is_little(self, stored: int, unfinished: int) -> bool:
        return stored + unfinished * UNFINISHED_BYTES < self._limits.stored_bytes

    async def may_store(self, tenant: str) -> bool:
        """Return whether a full tenant's running jobs still go on, and its refused ones still get a log."""
        await self._refresh()
        most = self._limits.stored_bytes * OVER
        return self._all_stored + self._bus.stored.total < most or await self._stored(tenant) < most

    async def _refresh(self) -> None:
        """Read how much all tenants together have, unless that was just read."""
        now = time.monotonic()
        if now - self._read_at < EVERY_S:
            return
        self._read_at, counted = now, self._bus.stored.total
        try:
            events, payloads = await self._state("EVENTS"), await self._state(f"OBJ_{PAYLOADS}")
            self._all_unfinished = (await self._state("RUN")).messages
        except Unavailable:
            self._read_at = -EVERY_S
            raise
        # Bytes counted here since the read began come on top.
        self._all_stored = events.bytes + payloads.bytes - counted
        for tenant in list(self._begun):
            self._forget_begun(tenant)
        self._jobs.clear()

    async def _state(self, stream: str, subjects: str | None = None) -> StreamState:
        try:
            return (await self._bus.js.stream_info(stream, subjects_filter=subjects)).state
        except BUS_AWAY as error:
            raise Unavailable("the bus", detail=f"{stream}: {type(error).__name__}") from None

    async def _stored(self, tenant: str) -> int:
        until, known = self._sums.get(tenant, (0.0, 0))
        if until < time.monotonic():
            known = await self._store.fetchval(tenant, self._store.sql.stored_bytes, tenant, KEPT_DAYS)
            _remember(self._sums, tenant, known, fresh_s=EVERY_S)
        return known + self._writing.get(tenant, 0) + self._bus.stored.of(tenant)

    async def _unfinished(self, tenant: str) -> int:
        until, known = self._jobs.get(tenant, (0.0, 0))
        if until < time.monotonic():
            async with self._counting:
                until, known = self._jobs.get(tenant, (0.0, 0))
                if until < time.monotonic():
                    known = await self._count(tenant)
        return known

    async def _count(self, tenant: str) -> int:
        """Count the run tickets of a tenant: one for each of its jobs that waits or runs."""
        state = await self._state("RUN", f"jobs.run.*.{tenant}")
        known = sum((state.subjects or {}).values())
        self._forget_begun(tenant)
        _remember(self._jobs, tenant, known, fresh_s=EVERY_S if known < self._limits.unfinished else FULL_FRESH_S)
        return known

    def _forget_begun(self, tenant: str) -> None:
        """Forget the jobs whose tickets have been counted by now."""
        begun, before = self._begun.get(tenant), time.monotonic() - TICKET_WITHIN_S
        while begun and begun[0] < before:
            begun.popleft()
        if not begun:
            self._begun.pop(tenant, None)

    async def start(self) -> None:
        await self._writer.start()

    async def stop(self, grace_s: float) -> None:
        """End after writing what is left, or in the middle of it when the grace is over."""
        await self._writer.stop(grace_s)

    async def write(self) -> None:
        """Add the bytes stored since the last time to the sums; what cannot be written now is written later."""
        taken = self._writing = self._bus.stored.take()
        if not taken:
            return
        try:
            async with self._store.system() as conn:
                await conn.execute(self._store.sql.add_stored, list(taken), list(taken.values()), KEPT_DAYS)
            for tenant in taken:
                self._sums.pop(tenant, None)
        except POSTGRES_AWAY as error:
            log.warning("put off", what="sums of stored bytes", why=str(error) or type(error).__name__)
            for tenant, size in taken.items():
                self._bus.stored.note(tenant, size)
        finally:
            self._writing = {}


def _remember(known: dict[str, tuple[float, int]], tenant: str, value: int, *, fresh_s: float) -> None:
    if len(known) >= REMEMBERED_MAX:
        known.clear()
    known[tenant] = time.monotonic() + fresh_s, value
