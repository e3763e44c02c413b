"""From the log to the tables: records come in batches, and each job's story goes on from where it was."""

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
from wayline.llm.labels import ModelLabels
from wayline.telemetry import metrics
from wayline.tracing.adapters.tables import Key, Tables
from wayline.tracing.errors import NotARecord
from wayline.tracing.facts import Tally
from wayline.tracing.owners import Owners
from wayline.tracing.rows import Rows, SpanRow
from wayline.tracing.story import Chapter, Story

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
    """A record from its wire form. Raises NotARecord."""
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
        owners: Owners,
        *,
        stories_max: int,
        forward: Callable[[list[SpanRow]], None] | None = None,
    ) -> None:
        self._bus = bus
        self._tables = tables
        self._owners = owners
        self._stories_max = stories_max
        self._forward = forward
        self._tally = Tally(ModelLabels())
        self._stories: OrderedDict[Key, Story] = OrderedDict()

    async def read(self, message: Msg) -> Record | None:
        """Read a record from a message of the stream; None: nobody of us wrote it. Raises NotARecord."""
        if not is_record(message.headers):
            note_foreign(message.subject, stored_at(message))
            return None
        return parse(message.subject, stored_at(message), await self.body(message))

    async def body(self, message: Msg, *, tenant: str | None = None) -> bytes:
        """The whole body of a record. Raises NotARecord."""
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
            await self._write(await self._told_further(by_job))
        except BaseException:
            # Stories that were told further than the tables are: the next attempt begins from the log.
            for key in by_job:
                self._stories.pop(key, None)
            raise

    async def catch_up(self, key: Key, *, upto: int) -> None:
        """Project what the tables lack of a job's log, up to a stream sequence that it has."""
        known = await self._tables.progress([key])
        await self._write({key: await self._from_log(key, known.get(key, 0), upto=upto)})

    async def anew(self, key: Key) -> Read:
        """Make all rows of a job again from its log, in one transaction.

        A job whose first record has left the log keeps its rows: nothing could bring them back.
        """
        story, read = Story(*key), Read()
        async with aclosing(self._records(key)) as records:
            async for record in records:
                if isinstance(record, NotARecord):
                    read = read._replace(unreadable=read.unreadable + 1)
                    continue
                if story.seq == 0 and record.events[0].seq != 1:
                    return read._replace(kept=True)
                read = read._replace(records=read.records + 1)
                for event in record.events:
                    story.tell(event)
        if not read.records:
            return read._replace(kept=True)
        self._owners.learn(story.trace_id, story.tenant)
        await self._tables.replace(key, story.trace_id, story.seq, story.chapter().rows)
        return read

    async def _write(self, stories: dict[Key, Story]) -> None:
        rows = Rows()
        chapters: dict[Key, Chapter] = {}
        for key, told in stories.items():
            chapter = chapters[key] = told.chapter()
            self._owners.learn(told.trace_id, told.tenant)
            rows.jobs += chapter.rows.jobs
            rows.steps += chapter.rows.steps
            rows.ledger += chapter.rows.ledger
            rows.spans += chapter.rows.spans
            self._keep(key, told)
        if not chapters:
            return
        moved = await self._tables.write(rows)
        for key, chapter in chapters.items():
            if key in moved:
                self._tally.count(chapter.facts)
                if self._forward and chapter.closed:
                    self._forward(chapter.closed)

    async def _told_further(self, by_job: dict[Key, list[Record]]) -> dict[Key, Story]:
        """The stories that these records take further."""
        told: dict[Key, Story] = {}
        unsure: list[Key] = []
        for key, records in by_job.items():
            records.sort(key=lambda record: record.events[0].seq)
            story = self._stories.get(key)
            if story is None and records[0].events[0].seq == 1:
                story = Story(*key)
            if story is None or not _follows(story, records):
                unsure.append(key)
            elif _tell(story, records):
                told[key] = story
        if unsure:
            known = await self._tables.progress(unsure)
            for key in unsure:
                if by_job[key][-1].events[-1].seq > known.get(key, 0):
                    told[key] = await self._from_log(key, known.get(key, 0), upto=by_job[key][-1].sequence)
        return told

    async def _from_log(self, key: Key, seq: int, *, upto: int) -> Story:
        """A job's story from its log, where the records in hand do not follow what is in memory."""
        story, skipped = Story(*key), False
        async for record in self._records(key, upto=upto):
            if isinstance(record, NotARecord):
                continue
            for event in record.events:
                if not skipped and event.seq > seq:
                    story.skip()
                    skipped = True
                story.tell(event)
        return story

    async def _records(self, key: Key, *, upto: int | None = None) -> AsyncGenerator[Record | NotARecord]:
        """Read a job's log, with what cannot be read in its place. Raises Unavailable."""
        subject = f"events.{key[0]}.{key[1]}"
        try:
            async with asyncio.timeout(READ_LOG_S):
                async for message in record_read(self._bus, subject, upto=upto):
                    sequence = int((message.headers or {})["Nats-Sequence"])
                    try:
                        record: Record | NotARecord = parse(subject, sequence, await self.body(message, tenant=key[0]))
                    except NotARecord as error:
                        # Its own delivery puts it aside; what else the log says is still true.
                        log.warning("passing over a record", subject=subject, sequence=sequence, why=str(error))
                        record = error
                    yield record
        except TimeoutError:
            raise Unavailable("the bus", detail=f"reading {subject}") from None

    def _keep(self, key: Key, story: Story) -> None:
        """Keep a running job's story for its next record."""
        self._stories.pop(key, None)
        if story.at_rest:
            return
        self._stories[key] = story
        if len(self._stories) > self._stories_max:
            self._stories.popitem(last=False)


def _follows(story: Story, records: Sequence[Record]) -> bool:
    """Whether the records go on where the story is, without a gap."""
    seq = story.seq
    for record in records:
        if record.events[0].seq > seq + 1:
            return False
        seq = max(seq, record.events[-1].seq)
    return True


def _tell(story: Story, records: Sequence[Record]) -> bool:
    """Tell what is new; says whether anything was."""
    before = story.seq
    for record in records:
        for event in record.events:
            if isinstance(event, Unknown):
                metrics.unknown_events.labels("tracing").inc()
            story.tell(event)
    return story.seq > before
