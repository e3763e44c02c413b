"""Compares the logs with the tables now and then, and makes good what differs.

What was put aside while it could not be stored is found so, and all else that the tables have lost: a job that stands
as running though its log has ended, a ledger whose sum is not its job's.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import aclosing
from datetime import UTC, datetime, timedelta

import structlog

from wayline.chassis import Bus
from wayline.chassis.topology import EVENTS_TRACING
from wayline.contracts import ids
from wayline.journal import bulk_read, header_fields, is_record
from wayline.store import PostgresUnavailable
from wayline.telemetry import metrics
from wayline.tracing.consume.projector import Projector
from wayline.tracing.consume.stored_ranges import StoredRanges
from wayline.tracing.tables import Drift, Key, Tables

log = structlog.get_logger()

RECORDS_MAX = 5_000
"""Records that are compared at once; then the place is kept."""
NEW_TURN_S = 20.0
"""How long one turn reads what is new; the next goes on behind it."""
AGAIN_TURN_S = 5.0
"""How long one turn compares again what was compared before, as long as something differs."""
AGAIN_RECORDS = 1_000
"""Records that a turn compares again where nothing differs: more than a million a day, for little CPU a minute."""
NEW, AGAIN = "new", "again"
EVERY_RECORD = "events.*.*"


class DriftCheck:
    """Walks over the acked part of the log: first what is new, then all of it again, some seconds each turn."""

    def __init__(self, bus: Bus, tables: Tables, projector: Projector, *, keep_days: int, stored: StoredRanges) -> None:
        self._bus = bus
        self._tables = tables
        self._projector = projector
        self._keep_days = keep_days
        self._stored = stored
        self._places: dict[str, int] | None = None
        """How far each walk has come; None: not read yet."""

    async def check(self) -> None:
        """Take one turn. Raises Unavailable or PostgresUnavailable, and goes on from the same place next time."""
        info = await self._bus.js.consumer_info(EVENTS_TRACING.stream, EVENTS_TRACING.name)
        # What is not acked yet is still being stored.
        acked = info.ack_floor.stream_seq if info.ack_floor else 0
        # Read each time: the places are those of all processes that check.
        self._places = await self._tables.drift_places()
        new = await self._go_on(min(self._place(NEW), acked), acked)
        metrics.drift_lag.set(acked - new)
        if new < acked:
            return
        # The whole log again: a database that was restored has lost what was seen here before.
        again = self._place(AGAIN)
        await self._go_over_again(again if again < acked else 0, acked)

    def _place(self, walk: str) -> int:
        return (self._places or {}).get(walk, 0)

    async def _go_on(self, after: int, acked: int) -> int:
        """Compare what is new until all is compared or the turn is over; return how far it has come."""
        until = time.monotonic() + NEW_TURN_S
        while after < acked:
            # What this process has stored is in the tables, whatever is lost later: that is for the second walk.
            stored = min(self._stored.end_after(after), acked)
            after = stored if stored > after else (await self._walk(after, acked, most=RECORDS_MAX))[0]
            await self._tables.put_drift_place(NEW, after)
            if time.monotonic() > until:
                break
        return after

    async def _go_over_again(self, after: int, acked: int) -> None:
        """Compare a small piece of all again, and as long as something differs, until the turn is over, the next."""
        until = time.monotonic() + AGAIN_TURN_S
        while after < acked:
            after, differ = await self._walk(after, acked, most=AGAIN_RECORDS)
            await self._tables.put_drift_place(AGAIN, after)
            if not differ or time.monotonic() > until:
                break

    async def _walk(self, after: int, upto: int, *, most: int) -> tuple[int, int]:
        """Compare the next records; return the stream sequence of the last, and how many jobs differed."""
        last: dict[str, tuple[int, Mapping[str, str]]] = {}
        read, at = 0, after
        async with aclosing(bulk_read(self._bus, "EVENTS", EVERY_RECORD, after=after)) as messages:
            async for message in messages:
                headers = message.headers or {}
                sequence = int(headers["Nats-Sequence"])
                if sequence > upto:
                    break
                read, at = read + 1, sequence
                if is_record(headers):
                    last[headers["Nats-Subject"]] = sequence, headers
                if read >= most:
                    break
        oldest = datetime.now(UTC) - timedelta(days=self._keep_days)
        heads: dict[Key, tuple[int, int]] = {}
        for subject, (sequence, headers) in last.items():
            _, tenant, job_id = subject.split(".")
            if ids.is_tenant(tenant) and datetime.fromisoformat(headers["Nats-Time-Stamp"]) > oldest:
                heads[tenant, job_id] = int(header_fields(headers)["seq"]), sequence
        differ = await self._compare(heads)
        return (at if read >= most else upto), differ

    async def _compare(self, heads: dict[Key, tuple[int, int]]) -> int:
        """Make good the jobs whose tables differ from their logs; return how many there were."""
        if not heads:
            return 0
        differ = await self._tables.drifted({key: seq for key, (seq, _) in heads.items()})
        for key, drift in differ.items():
            try:
                await self._mend(key, drift, upto=heads[key][1])
            except PostgresUnavailable:
                raise
            except Exception as error:
                metrics.drift.labels(drift, "failed").inc()
                # One job that cannot be stored must not keep the others as they are.
                log.error("tables differ from a log", tenant=key[0], job=key[1], drift=drift, error=repr(error)[:500])
            else:
                metrics.drift.labels(drift, "mended").inc()
                log.warning("tables differed from a log", tenant=key[0], job=key[1], drift=drift)
        return len(differ)

    async def _mend(self, key: Key, drift: Drift, *, upto: int) -> None:
        if drift is Drift.BEHIND:
            await self._projector.catch_up(key, upto=upto)
        else:
            await self._projector.rebuild(key)
