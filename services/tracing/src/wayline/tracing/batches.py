"""Hands a consumer's messages over in batches, because one transaction for many costs a fraction of one for each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

import asyncpg
import structlog
from nats import errors as nats_errors
from nats.aio.msg import Msg

from wayline.chassis import Bus, Delivery, Failpoint, reach, stopped
from wayline.chassis.pull import Pull
from wayline.chassis.topology import Consumer
from wayline.contracts.errors import Reject
from wayline.store import PostgresUnavailable
from wayline.telemetry import metrics

log = structlog.get_logger()

T = TypeVar("T")

AWAY = (PostgresUnavailable, asyncpg.DeadlockDetectedError, asyncpg.LockNotAvailableError)
RETRY_S = 0.5
STOP_S = 1.0
"""How long a stop waits for a batch that the grace was not enough for."""
REFUSED = (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError)
"""Postgres will say the same the next time."""
ALONE_TRIES = 5
"""Deliveries after which a message that fails on its own too is put aside."""


class Batches(Generic[T]):
    """Reads messages of one consumer, stores up to `size` of them at once, then acks them all.

    A message that cannot be read is put aside. When a whole batch cannot be stored its messages are stored one by one,
    so that one of them cannot take its neighbours with it.
    """

    def __init__(
        self,
        bus: Bus,
        consumer: Consumer,
        *,
        read: Callable[[Msg], Awaitable[T]],
        store: Callable[[Sequence[T]], Awaitable[None]],
        size: int,
        linger_s: float,
    ) -> None:
        self._bus = bus
        self._consumer = consumer
        self._read = read
        self._store = store
        self._size = size
        self._linger_s = linger_s
        self._batch: list[Msg] = []
        self._begun = asyncio.Event()
        self._full = asyncio.Event()
        # Twice the size: the next batch collects while this one is written.
        self._pull = Pull(bus, consumer, self._take, slots=2 * size)
        self._task: asyncio.Task[None] | None = None
        self._draining = self._stopping = False

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"{self._consumer.stream} batches")
        await self._pull.start()

    async def stop(self, grace_s: float) -> None:
        """Ask for no more, store what is in hand within the grace."""
        await self._pull.stop()
        self._draining = True
        self._begun.set()
        self._full.set()
        if self._task is None:
            return
        _, late = await asyncio.wait({self._task}, timeout=grace_s)
        self._stopping = True
        if late:
            _, late = await asyncio.wait(late, timeout=STOP_S)
            await stopped(*late)

    def _take(self, message: Msg) -> None:
        self._batch.append(message)
        self._begun.set()
        if len(self._batch) >= self._size:
            self._full.set()

    async def _run(self) -> None:
        while not self._draining or self._batch:
            await self._begun.wait()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._full.wait(), self._linger_s)
            batch, self._batch = self._batch, []
            self._begun.clear()
            self._full.clear()
            if batch:
                await self._settle(batch)
                self._pull.free(len(batch))

    async def _settle(self, messages: list[Msg]) -> None:
        try:
            await self._patiently(messages)
        except Exception as error:  # whatever it is, each message gets its own chance
            log.warning("a batch failed, storing one by one", consumer=self._consumer.stream, error=repr(error)[:500])
            for message in messages:
                await self._alone(message)

    async def _alone(self, message: Msg) -> None:
        try:
            await self._patiently([message])
        except Exception as error:
            # Without the traceback: its locals are a job's content.
            log.error("a message cannot be stored", subject=message.subject, error=repr(error)[:500])
            delivery = Delivery.of(message)
            tries = min(ALONE_TRIES, self._consumer.max_deliver) if self._consumer.max_deliver > 0 else ALONE_TRIES
            if delivery.deliveries < tries and not isinstance(error, REFUSED):
                await _told(message.nak(delay=RETRY_S * 2**delivery.deliveries))
                return
            await self._bus.put_aside(
                Delivery.of(message), code="undeliverable", reason=f"{type(error).__name__}: {error}"
            )
            await _told(message.ack())

    async def _patiently(self, messages: list[Msg]) -> None:
        """Store and ack; while Postgres is away, wait: an outage must not use up deliveries."""
        waited_s = 0.0
        while True:
            try:
                await self._once(messages)
                return
            except AWAY as error:
                log.warning("waiting", consumer=self._consumer.stream, why=str(error) or type(error).__name__)
                if self._stopping:
                    # They were not acked: they come again, to whoever is there then.
                    return
            await asyncio.sleep(RETRY_S)
            waited_s += RETRY_S
            if waited_s >= self._consumer.ack_wait_s / 3:
                waited_s = 0.0
                for message in messages:
                    await _told(message.in_progress())

    async def _once(self, messages: list[Msg]) -> None:
        items: list[T] = []
        for message in messages:
            try:
                items.append(await self._read(message))
            except Reject as error:
                await self._bus.put_aside(Delivery.of(message), code=error.code, reason=str(error))
        reach(Failpoint.TRACING_STORE_BEFORE)
        if items:
            await self._store(items)
        reach(Failpoint.TRACING_STORE_AFTER)
        for message in messages:
            await _told(message.ack())
        reach(Failpoint.TRACING_ACK_AFTER)
        metrics.messages_handled.labels(self._bus.service, self._consumer.subject, "ok").inc(len(items))


async def _told(telling: Awaitable[None]) -> None:
    """Tell the server something that it works out by itself when the connection is away: the message comes again."""
    with suppress(nats_errors.Error):
        await telling
