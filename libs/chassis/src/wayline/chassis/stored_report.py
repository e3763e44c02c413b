"""Reports to the router what this process has stored for each tenant in the job logs and in PAYLOADS."""

from __future__ import annotations

import structlog

from wayline.chassis.concurrency.periodic import Periodic
from wayline.chassis.connection.bus import Bus
from wayline.contracts.errors import Bug, WaylineError
from wayline.contracts.tenants import NoteStored, StoredNoted

log = structlog.get_logger()

REPORT_EVERY_S = 2.0
REPORT_AT_BYTES = 256 * 1024
"""A tenant with so many unreported bytes is reported in the next round, any other in every ROUNDS-th."""
ROUNDS = 15
REPORT_WITHIN_S = 5.0


class StoredReport:
    """Reports to the router what this process has stored for each tenant.

    Bytes that a killed process had not reported are never counted: of one tenant at most REPORT_AT_BYTES and what it
    stored within REPORT_EVERY_S.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._rounds = 0
        self._stopping = False
        self._reporting = Periodic("stored bytes", self._round, every_s=REPORT_EVERY_S, last_turn=True)

    async def start(self) -> None:
        await self._reporting.start()

    async def stop(self, grace_s: float) -> None:
        """End after a last report of everything, or in the middle of it when the grace is over."""
        self._stopping = True
        await self._reporting.stop(grace_s)

    async def _round(self) -> None:
        self._rounds += 1
        everything = self._stopping or self._rounds % ROUNDS == 0
        await self.report(at_least=1 if everything else REPORT_AT_BYTES)

    async def report(self, *, at_least: int = 1) -> None:
        """Report every tenant with at least so many bytes; a report that fails is made again later."""
        taken = self._bus.stored.take(at_least=at_least)
        for tenant, size in taken.items():
            try:
                note = NoteStored(tenant=tenant, stored_bytes=size)
                noted = await self._bus.ask(note, StoredNoted, timeout_s=REPORT_WITHIN_S)
                self._bus.stored.set_over(tenant, noted.over)
            except Bug as error:
                # A bus whose permissions are older than this build: nothing is lost but the count.
                log.warning("stored bytes are not counted", tenant=tenant, why=str(error))
            except WaylineError:
                self._bus.stored.note(tenant, size)
