"""What this process stores for each tenant in the job logs and in PAYLOADS; the router is told, and keeps the sums."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from wayline.contracts.errors import Bug, WaylineError
from wayline.contracts.tenants import NoteStored, StoredNoted

if TYPE_CHECKING:
    from wayline.chassis.bus import Bus

log = structlog.get_logger()

REPORT_EVERY_S = 2.0
REPORT_AT_BYTES = 256 * 1024
"""A tenant of whom so much is not reported yet is reported in the next round, any other in every ROUNDS-th."""
ROUNDS = 15
REPORT_WITHIN_S = 5.0
OVER_FRESH_S = 30.0
"""How long the router's word is believed that a tenant is beyond its share: who stores nothing more is not told of."""


class StoredBytes:
    """Counts the bytes of each tenant that nobody has been told of yet."""

    def __init__(self) -> None:
        self._waiting: dict[str, int] = {}
        self.total = 0
        """All bytes that were ever counted here."""
        self._over: dict[str, float] = {}

    def note(self, tenant: str, size: int) -> None:
        """Count bytes that the bus has stored."""
        self.total += size
        self._waiting[tenant] = self._waiting.get(tenant, 0) + size

    def of(self, tenant: str) -> int:
        """Return the bytes of a tenant that are not taken yet."""
        return self._waiting.get(tenant, 0)

    def take(self, *, at_least: int = 1) -> dict[str, int]:
        """Return the tenants with so many bytes, and forget these bytes here."""
        taken = {tenant: size for tenant, size in self._waiting.items() if size >= at_least}
        for tenant in taken:
            del self._waiting[tenant]
        return taken

    def set_over(self, tenant: str, over: bool) -> None:
        """Remember what the router says of a tenant's share."""
        self._over.pop(tenant, None)
        if over:
            self._over[tenant] = time.monotonic() + OVER_FRESH_S

    def is_over(self, tenant: str) -> bool:
        """Return whether a tenant is so far beyond its share that its running jobs must end."""
        return bool(self._over) and self._over.get(tenant, 0.0) > time.monotonic()


class StoredReport:
    """Tells the router what this process has stored for each tenant.

    What a killed process had not told is never counted: of a tenant no more than REPORT_AT_BYTES and what it stored
    within REPORT_EVERY_S.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="stored bytes")

    async def stop(self, grace_s: float) -> None:
        """End after telling what is left, or in the middle of it when the grace is over."""
        self._stopping.set()
        if self._task is not None:
            _, late = await asyncio.wait({self._task}, timeout=grace_s)
            for task in late:
                task.cancel()

    async def _run(self) -> None:
        round_ = 0
        while not self._stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), REPORT_EVERY_S)
            round_ += 1
            everything = self._stopping.is_set() or round_ % ROUNDS == 0
            await self.tell(at_least=1 if everything else REPORT_AT_BYTES)

    async def tell(self, *, at_least: int = 1) -> None:
        """Tell the router of every tenant with so many bytes; what it does not hear is told again later."""
        taken = self._bus.stored.take(at_least=at_least)
        for tenant, size in taken.items():
            try:
                note = NoteStored(tenant=tenant, stored_bytes=size)
                said = await self._bus.ask(note, StoredNoted, timeout_s=REPORT_WITHIN_S)
                self._bus.stored.set_over(tenant, said.over)
            except Bug as error:
                # A bus whose permissions are older than this build: nothing is lost but the count.
                log.warning("stored bytes are not counted", tenant=tenant, why=str(error))
            except WaylineError:
                self._bus.stored.note(tenant, size)
