"""Ends jobs of sessions whose submission is lost, and forgets turns that are as old as the logs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta

import orjson
import structlog

from wayline.chassis import Bus, Periodic
from wayline.chassis.concurrency.each_alone import each_alone
from wayline.chassis.connection.bus import AWAY
from wayline.contracts.errors import Unavailable
from wayline.contracts.events import Event
from wayline.contracts.jobs import Turn
from wayline.journal import Fenced, JobLog
from wayline.router.admission import first_events
from wayline.router.sessions.turn_table import TurnTable
from wayline.store import Record

log = structlog.get_logger()

LOOK_EVERY_S = 600.0
BEGUN_WITHIN_S = 600.0
"""How long a job that has its turn is given to get a log, and by how much the clocks of bus and tables may differ."""
SESSIONS_AT_ONCE = 500
KEPT_DAYS = 31
"""Logs are kept 30 days, and the first of them began in the middle of a day."""
FORGOTTEN_AT_ONCE = 10_000
INFO_TIMEOUT_S = 5.0

Conclude = Callable[[JobLog, Sequence[Event]], Awaitable[None]]
"""Does what follows the end of a job that no executor held."""


class TurnUpkeep:
    """Looks every so often at the first open turn of each session, and at turns that nobody asks for any more."""

    def __init__(
        self,
        bus: Bus,
        table: TurnTable,
        conclude: Conclude,
        *,
        every_s: float = LOOK_EVERY_S,
        within_s: float = BEGUN_WITHIN_S,
    ) -> None:
        self._bus = bus
        self._table = table
        self._conclude = conclude
        self._within_s = within_s
        self._periodic = Periodic("turns", self.look, every_s=every_s)
        self.start = self._periodic.start
        self.stop = self._periodic.stop

    async def look(self) -> None:
        """End jobs whose submission is lost, and forget old turns."""
        while await self.end_lost():
            # The next turn of a session may be lost, too.
            pass
        await self.forget()

    async def end_lost(self) -> int:
        """End jobs that have their turn and no log, and whose submission is on the bus no more; returns how many.

        A router that died between the turn and the log gets the submission again. One that was purged, or expired in an
        outage, comes to nobody: the jobs behind it would wait for ever.
        """
        oldest = await self._oldest_submission()
        ended, place = 0, ("", "")
        while True:
            rows = await self._table.first_open(place, older_than_s=self._within_s, limit=SESSIONS_AT_ONCE)
            found: list[bool] = []

            async def look(row: Record, found: list[bool] = found) -> None:
                found.append(await self._end_if_lost(row, oldest))

            await each_alone("turn", rows, look)
            ended += sum(found)
            if len(rows) < SESSIONS_AT_ONCE:
                return ended
            place = rows[-1]["tenant"], rows[-1]["session_id"]

    async def _end_if_lost(self, row: Record, oldest: datetime | None) -> bool:
        # The stream was asked before the log: a submission leaves it only when its log is there.
        if oldest is not None and oldest < row["taken_at"] + timedelta(seconds=self._within_s):
            return False
        job_log = JobLog(self._bus, row["tenant"], row["job_id"])
        if await job_log.last() is not None:
            return False
        record = first_events.lost(
            job_log.tenant,
            job_log.job_id,
            agent=row["agent"],
            session_id=row["session_id"],
            turn=Turn(number=row["number"], after=row["after"]),
            at=datetime.now(UTC),
        )
        try:
            await job_log.begin(record, content_hash=record[0].content_hash, lane=record[0].job.options.lane)
        except Fenced:
            # It was submitted again at this very moment.
            return False
        log.warning("a submission was lost", tenant=job_log.tenant, session=row["session_id"], job=job_log.job_id)
        await self._conclude(job_log, record)
        return True

    async def _oldest_submission(self) -> datetime | None:
        """Return when the oldest submission that nobody has taken was stored; None: there is none.

        Raises Unavailable.
        """
        try:
            reply = await self._bus.request(f"{self._bus.api}.STREAM.INFO.SUBMIT", b"", timeout_s=INFO_TIMEOUT_S)
        except AWAY:
            raise Unavailable("the bus", detail="asking for the oldest submission") from None
        state = orjson.loads(reply.data)["state"]
        return datetime.fromisoformat(state["first_ts"]) if state["messages"] else None

    async def forget(self) -> int:
        """Forget turns whose jobs' logs have expired; returns how many."""
        forgotten = 0
        while True:
            count = await self._table.forget(after_days=KEPT_DAYS, at_most=FORGOTTEN_AT_ONCE)
            forgotten += count
            if count < FORGOTTEN_AT_ONCE:
                return forgotten
