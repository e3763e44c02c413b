"""What happens to a tenant's jobs, read once for all clients that follow it here, from the stream of logs."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from fastapi.sse import format_sse_event
from nats.aio.msg import Msg

from wayline.chassis import Bus
from wayline.chassis.claim_check.claims import PayloadMissing
from wayline.contracts.errors import Retry
from wayline.gateway.errors import ShareOfStreams
from wayline.gateway.shapes.tenant_events import EventFilter, Gap, TenantEvent, shown_event
from wayline.journal import TenantLog, TenantRecord, decode

log = structlog.get_logger()

RESUMABLE = timedelta(hours=1)
WAITING_MAX = 2_000
"""Events held for one client: of one that reads too slowly for its tenant's events the connection ends."""
HEARTBEAT_S = 15.0
LINGER_S = 0.02
"""How long is waited for more before the stream is read."""
AGAIN_S = 1.0
CUT = b": you read too slowly; come back with Last-Event-ID\n\n"
JOBS_REMEMBERED_MAX = 5_000
"""Of each tenant that is followed: whose they are, and of which agent."""


@dataclass(frozen=True, slots=True)
class _JobFacts:
    agent: str | None = None
    user_id: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """An event, and how it is written to every client that wants it."""

    event: TenantEvent
    encoded: bytes
    sequence: int


@dataclass(eq=False)
class Listener:
    """A client of a tenant's events, and what it has not been told yet."""

    wanted: EventFilter
    waiting: deque[Told] = field(default_factory=deque)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    is_cut: bool = False

    def tell(self, told: Told) -> None:
        """Hold an event for the client, or cut it off where too many are held: nobody waits for it."""
        if self.is_cut or not self.wanted.wants(told.event):
            return
        if len(self.waiting) >= WAITING_MAX:
            self.cut()
            return
        self.waiting.append(told)
        self.news.set()

    def cut(self) -> None:
        """Hold nothing for the client any more, and end its answer at its next read: it resumes where it was."""
        self.is_cut = True
        self.waiting.clear()
        self.news.set()


class TenantFeeds:
    """The feeds of tenants that are followed; without a client there is none."""

    def __init__(self, bus: Bus, *, per_tenant_max: int) -> None:
        self._bus = bus
        self._most = per_tenant_max
        self._feeds: dict[str, _Feed] = {}

    def require_room(self, tenant: str) -> None:
        """Refuse a client before its answer begins. Raises ShareOfStreams."""
        feed = self._feeds.get(tenant)
        if feed is not None and len(feed.listeners) >= self._most:
            raise ShareOfStreams(whose=f"tenant {tenant!r}", most=self._most, setting="EVENT_STREAMS_PER_TENANT_MAX")

    async def follow(self, tenant: str, wanted: EventFilter, *, last_id: str | None) -> AsyncGenerator[bytes]:
        """Yield server-sent events: from behind `last_id` on, or what happens from now on. Raises ShareOfStreams."""
        with self._listening(tenant, wanted) as (feed, listener):
            async for told in _told(feed, listener, last_id):
                yield told

    @contextmanager
    def _listening(self, tenant: str, wanted: EventFilter) -> Iterator[tuple[_Feed, Listener]]:
        self.require_room(tenant)
        feed = self._feeds.get(tenant)
        if feed is None or feed.is_over:
            # Clients of one that is over, who have not read their end yet, are none of the new one's.
            feed = self._feeds[tenant] = _Feed(self._bus, tenant)
        listener = Listener(wanted)
        feed.listeners.add(listener)
        try:
            yield feed, listener
        finally:
            feed.listeners.discard(listener)
            if not feed.listeners:
                feed.end()
                if self._feeds.get(tenant) is feed:
                    del self._feeds[tenant]


async def _told(feed: _Feed, listener: Listener, last_id: str | None) -> AsyncGenerator[bytes]:
    # What comes meanwhile is held for the listener already.
    upto = await feed.begun()
    after = (upto, 0)
    if last_id is not None:
        after = _place(last_id, upto)
        stored_at, oldest = await feed.log.stored_after(after[0]), datetime.now(UTC) - RESUMABLE
        since = oldest if stored_at is not None and stored_at < oldest else None
        if since is not None:
            yield format_sse_event(event="gap", data_str=Gap(after=last_id, since=since).model_dump_json())
        async for told in feed.stored(after, upto=upto, since=since):
            if listener.wanted.wants(told.event):
                yield told.encoded
    yield _heartbeat(upto)
    last = upto
    while True:
        try:
            async with asyncio.timeout(HEARTBEAT_S):
                await listener.news.wait()
        except TimeoutError:
            # With a place: a client that is told of little can resume all the same.
            last = max(last, feed.position) if not listener.waiting else last
            yield _heartbeat(last)
            continue
        listener.news.clear()
        while listener.waiting:
            told = listener.waiting.popleft()
            if told.sequence > upto:
                last = told.sequence
                yield told.encoded
        if listener.is_cut:
            yield CUT
            return


def _heartbeat(sequence: int) -> bytes:
    return f": ping\nid: {sequence}\n\n".encode()


def _place(last_id: str, upto: int) -> tuple[int, int]:
    """Return the sequence and the place in its record that a client has seen; not what nothing was stored at yet."""
    sequence, _, place = last_id.partition(".")
    return (int(sequence), int(place)) if place else (min(int(sequence), upto), 10**9)


class _Feed:
    """Reads one tenant's logs as they grow, and tells its listeners."""

    def __init__(self, bus: Bus, tenant: str) -> None:
        self.log = TenantLog(bus, tenant)
        self.listeners: set[Listener] = set()
        self.position = 0
        self._bus = bus
        self._tenant = tenant
        self._jobs: OrderedDict[str, _JobFacts] = OrderedDict()
        self._grown = asyncio.Event()
        self._begun = asyncio.create_task(self._begin(), name=f"events of {tenant}")
        self._reading: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        """Return whether it reads no more: of its clients each is told so at its next read."""
        return self._begun.done() and (self._reading is None or self._reading.done())

    async def begun(self) -> int:
        """Return up to where everything was stored before the feed tells its listeners. Raises Unavailable."""
        # One client's leaving must not end the beginning that others wait for.
        await asyncio.shield(self._begun)
        return self.position

    async def _begin(self) -> None:
        async def hear(_: Msg) -> None:
            self._grown.set()

        subscription = await self._bus.nc.subscribe(f"live.{self._tenant}.*", cb=hear)
        try:
            await self._bus.settled()
            self.position = await self.log.last()
        except BaseException:
            with suppress(Exception):
                await subscription.unsubscribe()
            raise
        self._reading = asyncio.create_task(self._read_on(subscription), name=f"events of {self._tenant}")

    def end(self) -> None:
        """Read no more."""
        self._begun.cancel()
        if self._reading is not None:
            self._reading.cancel()

    async def _read_on(self, subscription: Any) -> None:
        try:
            while True:
                # Live messages only wake: one that is lost costs time, and no event.
                with suppress(TimeoutError):
                    async with asyncio.timeout(HEARTBEAT_S):
                        await self._grown.wait()
                await asyncio.sleep(LINGER_S)
                self._grown.clear()
                try:
                    await self._read()
                except Retry as error:
                    log.info("a tenant's events cannot be read now", tenant=self._tenant, why=str(error))
                    self._grown.set()
                    await asyncio.sleep(AGAIN_S)
        finally:
            # Without a reader nothing would come: its clients come back to another one.
            for listener in self.listeners:
                listener.cut()
            with suppress(Exception):
                await subscription.unsubscribe()

    async def _read(self) -> None:
        while True:
            page = await self.log.page(after=self.position)
            for record in page.records:
                for told in await self._shown(record):
                    for listener in tuple(self.listeners):
                        listener.tell(told)
                self.position = record.sequence
            self.position = max(self.position, page.upto)
            if page.is_last:
                return
            # Listeners write what they hold before there is more.
            await asyncio.sleep(0)

    async def stored(self, after: tuple[int, int], *, upto: int, since: datetime | None) -> AsyncGenerator[Told]:
        """Yield what was stored between two places, read no faster than it is taken. Raises Unavailable."""
        sequence, place = after
        # The record of the place itself once more: it may hold events behind it.
        at = max(sequence - 1, 0)
        while at < upto:
            page = await self.log.page(after=at, since=since)
            since = None
            for record in page.records:
                if record.sequence > upto:
                    return
                for number, told in enumerate(await self._shown(record)):
                    if record.sequence > sequence or (record.sequence == sequence and number > place):
                        yield told
            if page.is_last or page.upto <= at:
                return
            at = page.upto

    async def _shown(self, record: TenantRecord) -> list[Told]:
        facts = await self._facts(record)
        told: list[Told] = []
        for number, value in enumerate(record.values):
            event = shown_event(value, agent=facts.agent, user_id=facts.user_id, session_id=facts.session_id)
            place = f"{record.sequence}.{number}"
            encoded = format_sse_event(event=event.type, data_str=event.model_dump_json(exclude_none=True), id=place)
            told.append(Told(event, encoded, record.sequence))
        return told

    async def _facts(self, record: TenantRecord) -> _JobFacts:
        known = self._jobs.get(record.job_id)
        if known is not None:
            self._jobs.move_to_end(record.job_id)
            return known
        first = next((value for value in record.values if value["type"] == "job.submitted"), None)
        job = first.get("job") if first is not None else None
        if record.has_claims or not isinstance(job, dict):
            job = await self._job(record.job_id)
        facts = _JobFacts(job.get("agent"), job.get("user_id"), job.get("session_id"))
        self._jobs[record.job_id] = facts
        if len(self._jobs) > JOBS_REMEMBERED_MAX:
            self._jobs.popitem(last=False)
        return facts

    async def _job(self, job_id: str) -> dict[str, Any]:
        """Return what was submitted; nothing where the beginning of the log is gone. Raises Unavailable."""
        first = await self.log.first_of(job_id)
        if first is None:
            return {}
        values = first.values
        if first.has_claims:
            try:
                values = decode(await self._bus.body(first.message, tenant=self._tenant))
            except PayloadMissing:
                return {}
        return next((value["job"] for value in values if value["type"] == "job.submitted"), {})
