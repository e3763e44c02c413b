"""Projects records of the log into the tables, in batches; each job goes on from where its projection was."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import NamedTuple

import structlog
from nats.aio.msg import Msg
from pydantic import ValidationError

from wayline.chassis import Bus, stored_at
from wayline.contracts import ids
from wayline.contracts.errors import InvalidMessage, Unavailable
from wayline.contracts.events import Event, Unknown
from wayline.journal import Shared, decode, is_record, note_foreign, record_read
from wayline.telemetry import metrics
from wayline.tracing.consume.stored_ranges import StoredRanges
from wayline.tracing.consume.trace_tenants import TraceTenants
from wayline.tracing.errors import NotARecord
from wayline.tracing.job_metrics import JobMetrics
from wayline.tracing.projection.job_projection import Changes, JobProjection
from wayline.tracing.rows import Rows, SpanRow
from wayline.tracing.tables import Key, Tables

log = structlog.get_logger()

READ_LOG_S = 10.0
"""How long reading one job's log may take before its records are left for a later delivery."""


_ALIKE = Shared()


class Record(NamedTuple):
    """A record as it came: whose, where in the stream, and its events."""

    tenant: str
    job_id: str
    sequence: int
    events: list[Event]

    @property
    def key(self) -> Key:
        return self.tenant, self.job_id


def parse(subject: str, sequence: int, body: bytes) -> Record:
    """Read a record from its wire form. Raises NotARecord."""
    _, tenant, job_id = subject.split(".")
    try:
        events = _ALIKE.events(decode(body))
    except (ValidationError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotARecord(" ".join(str(error).split())[:500] or type(error).__name__) from None
    if not events or not ids.is_tenant(tenant):
        raise NotARecord("it holds no event" if not events else f"{tenant!r} is no tenant")
    return Record(tenant, job_id, sequence, events)


class Read(NamedTuple):
    """What reading one job's log has brought."""

    records: int = 0
    unreadable: int = 0
    kept: bool = False
    """Its rows were left as they are."""


class Projector:
    """Turns records into rows, each event once, however often and in whatever order its record comes."""

    def __init__(
        self,
        bus: Bus,
        tables: Tables,
        trace_tenants: TraceTenants,
        *,
        jobs_max: int,
        forward: Callable[[list[SpanRow]], None] | None = None,
        stored: StoredRanges | None = None,
        job_metrics: JobMetrics | None = None,
    ) -> None:
        self._bus = bus
        self._tables = tables
        self._trace_tenants = trace_tenants
        self._jobs_max = jobs_max
        self._forward = forward
        self._job_metrics = job_metrics or JobMetrics()
        self._projections: OrderedDict[Key, JobProjection] = OrderedDict()
        self._stored = stored or StoredRanges()
        """The places of the stream whose records are in the tables, or are none."""

    async def read(self, message: Msg) -> Record | None:
        """Read a record from a message of the stream; None: no service of ours wrote it. Raises NotARecord."""
        if not is_record(message.headers):
            note_foreign(message.subject, stored_at(message))
            self._stored.note((stored_at(message),))
            return None
        return parse(message.subject, stored_at(message), await self.body(message))

    async def body(self, message: Msg, *, tenant: str | None = None) -> bytes:
        """Return the whole body of a record. Raises NotARecord."""
        try:
            return await self._bus.body(message, tenant=tenant)
        except InvalidMessage as error:
            raise NotARecord(str(error)) from None

    async def store(self, records: Sequence[Record]) -> None:
        """Project records, all or none of them."""
        by_job: dict[Key, list[Record]] = {}
        for record in records:
            by_job.setdefault(record.key, []).append(record)
        try:
            await self._write(await self._advanced(by_job))
        except BaseException:
            # These projections are ahead of the tables: the next attempt begins from the log.
            for key in by_job:
                self._projections.pop(key, None)
            raise
        self._stored.note(record.sequence for record in records)

    async def catch_up(self, key: Key, *, upto: int) -> None:
        """Project what the tables lack of a job's log, up to a stream sequence that it has."""
        known = await self._tables.progress([key])
        await self._write({key: await self._from_log(key, known.get(key, 0), upto=upto)})

    async def rebuild(self, key: Key) -> Read:
        """Make all rows of a job again from its log, in one transaction.

        A job whose first record has left the log keeps its rows: nothing could bring them back.
        """
        projection, read = JobProjection(*key), Read()
        async with aclosing(self._records(key)) as records:
            async for record in records:
                if isinstance(record, NotARecord):
                    read = read._replace(unreadable=read.unreadable + 1)
                    continue
                if projection.seq == 0 and record.events[0].seq != 1:
                    return read._replace(kept=True)
                read = read._replace(records=read.records + 1)
                for event in record.events:
                    projection.apply(event)
        if not read.records:
            return read._replace(kept=True)
        self._trace_tenants.learn(projection.trace_id, projection.tenant)
        await self._tables.replace(key, projection.trace_id, projection.seq, projection.take_changes().rows)
        return read

    async def _write(self, projections: dict[Key, JobProjection]) -> None:
        rows = Rows()
        changes_of: dict[Key, Changes] = {}
        for key, projection in projections.items():
            changes = changes_of[key] = projection.take_changes()
            self._trace_tenants.learn(projection.trace_id, projection.tenant)
            rows.jobs += changes.rows.jobs
            rows.steps += changes.rows.steps
            rows.ledger += changes.rows.ledger
            rows.spans += changes.rows.spans
            self._keep(key, projection)
        if not changes_of:
            return
        moved = await self._tables.write(rows)
        for key, changes in changes_of.items():
            if key in moved:
                trace_id = projections[key].trace_id
                self._job_metrics.count(changes.facts, tenant=key[0], trace_id=trace_id, job_id=key[1])
                if self._forward and changes.closed:
                    self._forward(changes.closed)

    async def _advanced(self, by_job: dict[Key, list[Record]]) -> dict[Key, JobProjection]:
        """Return the projections that these records advance."""
        advanced: dict[Key, JobProjection] = {}
        unsure: list[Key] = []
        for key, records in by_job.items():
            records.sort(key=lambda record: record.events[0].seq)
            projection = self._projections.get(key)
            if projection is None and records[0].events[0].seq == 1:
                projection = JobProjection(*key)
            if projection is None or not _follows(projection, records):
                unsure.append(key)
            elif _apply(projection, records):
                advanced[key] = projection
        if unsure:
            known = await self._tables.progress(unsure)
            for key in unsure:
                if by_job[key][-1].events[-1].seq > known.get(key, 0):
                    advanced[key] = await self._from_log(key, known.get(key, 0), upto=by_job[key][-1].sequence)
        return advanced

    async def _from_log(self, key: Key, seq: int, *, upto: int) -> JobProjection:
        """Project a job from its log, where the records in hand do not follow what is in memory."""
        projection, skipped = JobProjection(*key), False
        async for record in self._records(key, upto=upto):
            if isinstance(record, NotARecord):
                continue
            for event in record.events:
                if not skipped and event.seq > seq:
                    projection.mark_stored()
                    skipped = True
                projection.apply(event)
        return projection

    async def _records(self, key: Key, *, upto: int | None = None) -> AsyncGenerator[Record | NotARecord]:
        """Yield the records of a job's log, with what cannot be read in its place. Raises Unavailable."""
        subject = f"events.{key[0]}.{key[1]}"
        try:
            async with asyncio.timeout(READ_LOG_S):
                async for message in record_read(self._bus, subject, upto=upto):
                    sequence = int((message.headers or {})["Nats-Sequence"])
                    try:
                        record = parse(subject, sequence, await self.body(message, tenant=key[0]))
                    except NotARecord as error:
                        # Its own delivery puts it aside; what else the log says is still true.
                        log.warning("passing over a record", subject=subject, sequence=sequence, why=str(error))
                        yield error
                    else:
                        yield record
        except TimeoutError:
            raise Unavailable("the bus", detail=f"reading {subject}") from None

    def _keep(self, key: Key, projection: JobProjection) -> None:
        """Keep a running job's projection for its next record."""
        self._projections.pop(key, None)
        if projection.is_idle:
            return
        self._projections[key] = projection
        if len(self._projections) > self._jobs_max:
            self._projections.popitem(last=False)


def _follows(projection: JobProjection, records: Sequence[Record]) -> bool:
    """Return whether the records continue the projection without a gap."""
    seq = projection.seq
    for record in records:
        if record.events[0].seq > seq + 1:
            return False
        seq = max(seq, record.events[-1].seq)
    return True


def _apply(projection: JobProjection, records: Sequence[Record]) -> bool:
    """Apply the new events; return whether there were any."""
    before = projection.seq
    for record in records:
        for event in record.events:
            if isinstance(event, Unknown):
                metrics.unknown_events.labels("tracing").inc()
            projection.apply(event)
    return projection.seq > before
