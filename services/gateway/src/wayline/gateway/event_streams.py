"""Server-sent events of a job, and the clients that follow one right now."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

from wayline.contracts.errors import Unavailable
from wayline.contracts.events import Event
from wayline.contracts.jobs import Delta, QueuePlace
from wayline.contracts.progress import Progress
from wayline.gateway.errors import ShareOfStreams, TooManyStreams
from wayline.gateway.keys import Caller
from wayline.journal import News, ProgressNews
from wayline.telemetry import metrics

T = TypeVar("T")

UNBUFFERED: Final = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
"""Headers of a stream of events, which no proxy is to hold back."""
LIST_PIECE_BYTES: Final = 32 * 1024
"""From which on a part of a list is sent."""


class EventStreams:
    """The clients that follow or wait here: bounded in number, of a key and a tenant too; ended with the process."""

    def __init__(self, most: int, *, per_tenant: int | None = None, per_key: int | None = None) -> None:
        self._most = most
        self._per_tenant = per_tenant or most
        self._per_key = per_key or most
        self._followers: set[asyncio.Task[object]] = set()
        self._by_tenant: Counter[str] = Counter()
        self._by_key: Counter[tuple[str, str]] = Counter()
        self._closing = False

    def require_room(self, caller: Caller) -> None:
        """Refuse a client before its answer begins.

        Raises TooManyStreams, ShareOfStreams, or Unavailable while the process ends.
        """
        if self._closing:
            raise Unavailable("this gateway", detail="it is stopping")
        if len(self._followers) >= self._most:
            raise TooManyStreams(most=self._most)
        if self._by_key[_key(caller)] >= self._per_key:
            raise ShareOfStreams(whose="this key", most=self._per_key, setting="STREAMS_PER_KEY_MAX")
        if self._by_tenant[caller.tenant] >= self._per_tenant:
            raise ShareOfStreams(
                whose=f"tenant {caller.tenant!r}", most=self._per_tenant, setting="STREAMS_PER_TENANT_MAX"
            )

    @property
    def closing(self) -> bool:
        """Return whether the process is stopping."""
        return self._closing

    def close(self) -> None:
        """End every stream; its client comes back with Last-Event-ID, to us or to another replica."""
        self._closing = True
        for task in self._followers:
            task.cancel()

    def events(self, feed: News | ProgressNews, caller: Caller) -> AsyncIterator[bytes]:
        """Yield a job's events as server-sent events, written no faster than the client reads."""
        return self.written(feed, caller, encoded=encode)

    async def written(
        self, feed: AsyncGenerator[T, None], caller: Caller, *, encoded: Callable[[T], bytes]
    ) -> AsyncIterator[bytes]:
        """Yield what a feed tells as it is written, counting this client meanwhile."""
        try:
            with self.follower(caller) as follower:
                try:
                    async with aclosing(feed) as news:
                        async for item in news:
                            yield encoded(item)
                except asyncio.CancelledError:
                    if not follower.absorb_stop():
                        raise
        except (TooManyStreams, ShareOfStreams, Unavailable):
            # The answer has begun: its client comes back after this end, and is told then.
            await feed.aclose()

    @contextmanager
    def follower(self, caller: Caller) -> Iterator[Follower]:
        """Count this task as one that follows or waits, and cancel it when the process stops.

        Raises what `require_room` raises: of many that looked at once not all may have found a place.
        """
        self.require_room(caller)
        task = asyncio.current_task()
        assert task is not None
        self._followers.add(task)
        self._by_tenant[caller.tenant] += 1
        self._by_key[_key(caller)] += 1
        metrics.event_streams.inc()
        try:
            yield Follower(self, task)
        finally:
            self._followers.discard(task)
            _leave(self._by_tenant, caller.tenant)
            _leave(self._by_key, _key(caller))
            metrics.event_streams.dec()


def _key(caller: Caller) -> tuple[str, str]:
    return caller.tenant, caller.key_id


def _leave(counter: Counter[Any], whose: Any) -> None:
    counter[whose] -= 1
    if not counter[whose]:
        del counter[whose]


@dataclass(frozen=True)
class Follower:
    """A task that follows a job."""

    _streams: EventStreams
    _task: asyncio.Task[object]

    def absorb_stop(self) -> bool:
        """Take back a cancel that came because the process stops, so that the answer ends well; False: it did not."""
        if not self._streams.closing:
            return False
        self._task.uncancel()
        return True


def none_if_empty(last_event_id: Any) -> Any:
    """Return a `Last-Event-ID`, or None for an empty one, which some clients send before they have seen any event."""
    return None if last_event_id == "" else last_event_id


def encode(item: Event | Delta | Progress | QueuePlace | None) -> bytes:
    """Return one event with its `seq` as id, a delta, progress or a place in the queue without one, or a heartbeat."""
    if item is None:
        return KEEPALIVE_COMMENT
    if isinstance(item, Delta):
        # How far a call is comes as progress.
        data = item.__pydantic_serializer__.to_json(item, exclude={"tool"}, exclude_none=True).decode()
        return format_sse_event(event="delta", data_str=data)
    data = item.__pydantic_serializer__.to_json(item).decode()
    if isinstance(item, Progress):
        return format_sse_event(event="progress", data_str=data)
    if isinstance(item, QueuePlace):
        return format_sse_event(event="queue", data_str=data)
    return format_sse_event(event=item.type, data_str=data, id=str(item.seq))


async def as_list(feed: AsyncIterator[Event]) -> AsyncIterator[bytes]:
    """Yield the same events as one JSON list, as it is read.

    In pieces of many events: a piece, however small, costs its sender and its receiver more than an event does.
    """
    piece = bytearray(b"[")
    between = b""
    async for event in feed:
        piece += between + event.__pydantic_serializer__.to_json(event)
        between = b","
        if len(piece) >= LIST_PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece + b"]")
