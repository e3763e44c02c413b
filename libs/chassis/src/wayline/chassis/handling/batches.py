"""Hands a consumer's messages over in batches, because one transaction for many costs a fraction of one for each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog
from nats import errors as nats_errors
from nats.aio.msg import Msg

from wayline.chassis.concurrency.awaited_tasks import stopped
from wayline.chassis.connection.bus import Bus
from wayline.chassis.connection.delivery import Delivery
from wayline.chassis.failpoints import Failpoint, reach
from wayline.chassis.handling.ack_wait import ack_wait
from wayline.chassis.handling.pull import Pull
from wayline.chassis.topology import Consumer
from wayline.contracts.errors import Reject, Retry, Unavailable
from wayline.telemetry import metrics
from wayline.telemetry.recent_events import RecentEvents

log = structlog.get_logger()

T = TypeVar("T")

RETRY_S = 0.5
STOP_S = 1.0
"""How long a stop waits for a batch that the grace was not enough for."""
ALONE_TRIES = 5
"""Deliveries after which a message that fails on its own too is put aside."""
NAK_MAX_S = 30.0
DOUBLINGS_MAX = 16
BUSY_SHARE = 8
"""A batch that was a share of so many of a full one is followed by one that waits longer: then many come."""
FEW_PER_S = 40
"""Messages a second that are few."""
FEW_AT_ONCE = 80
"""More at once, as of one job that ends with all its spans, are few still."""
TROUBLE_ACK_WAITS = 2
"""How long a message that could be neither stored nor put aside is trouble: it comes again after one."""


@dataclass(frozen=True, slots=True)
class StoreErrors:
    """Which errors of the store mean what."""

    away: tuple[type[Exception], ...]
    """It cannot be reached, and waiting helps."""
    refused: tuple[type[Exception], ...]
    """It will say the same the next time."""


@dataclass(frozen=True, slots=True)
class Linger:
    """How long a batch waits for messages after its first."""

    quiet_s: float
    busy_s: float = 0.0
    """While many come: what several of them change is stored once."""
    idle_s: float | None = None
    """While few come, as of one job: there is nothing to save, and a person may wait for what they tell."""

    def after(self, messages: int, *, size: int) -> float:
        """Return how long a batch waits that follows one of so many messages."""
        return max(self.quiet_s, self.busy_s) if messages >= size / BUSY_SHARE else self.quiet_s


@dataclass(frozen=True, slots=True)
class BatchFailpoints:
    """Where a test may kill the process, around a batch."""

    store_before: Failpoint
    store_after: Failpoint
    ack_after: Failpoint


class Batches(Generic[T]):
    """Reads messages of one consumer, stores up to `size` of them at once, then acks them all.

    A message that cannot be read is put aside. When a whole batch cannot be stored its messages are stored one by one,
    so that one of them cannot take its neighbours with it. What cannot even be put aside is not acked, so it comes
    again; until then `check` fails, and everything else goes on.
    """

    def __init__(
        self,
        bus: Bus,
        consumer: Consumer,
        *,
        read: Callable[[Msg], Awaitable[T | None]],
        store: Callable[[Sequence[T]], Awaitable[None]],
        errors: StoreErrors,
        failpoints: BatchFailpoints,
        size: int,
        linger: Linger,
    ) -> None:
        self._bus = bus
        self._consumer = consumer
        self._read = read
        self._store = store
        self._errors = errors
        self._failpoints = failpoints
        self._size = size
        self._linger = linger
        self._ack_wait_s = consumer.ack_wait_s
        self._batch: list[Msg] = []
        self._in_hand: list[Msg] = []
        self._recent = RecentEvents(few_per_s=FEW_PER_S, few_at_once=FEW_AT_ONCE)
        self._trouble, self._trouble_until = "", 0.0
        self._begun = asyncio.Event()
        self._full = asyncio.Event()
        # Twice the size: the next batch collects while this one is written.
        self._pull = Pull(bus, consumer, self._take, slots=2 * size)
        self._task: asyncio.Task[None] | None = None
        self._draining = self._stopping = False

    async def start(self) -> None:
        self._ack_wait_s = await ack_wait(self._bus, self._consumer)
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

    async def check(self) -> None:
        """Check for the probes that everything that arrives is handled. Raises Unavailable, with what is wrong."""
        if self._task is None or self._task.done():
            raise Unavailable(f"the reader of {self._consumer.stream}", detail="it is not running")
        if asyncio.get_running_loop().time() < self._trouble_until:
            raise Unavailable(f"the reader of {self._consumer.stream}", detail=self._trouble)

    def _take(self, message: Msg) -> None:
        self._batch.append(message)
        self._begun.set()
        if len(self._batch) >= self._size:
            self._full.set()

    async def _run(self) -> None:
        linger_s = self._linger_after(0)
        while not self._draining or self._batch:
            await self._begun.wait()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._full.wait(), linger_s)
            self._in_hand, self._batch = self._batch, []
            self._begun.clear()
            self._full.clear()
            linger_s = self._linger_after(len(self._in_hand))
            if self._in_hand:
                await self._store_batch(self._in_hand)
                self._pull.free(len(self._in_hand))
                self._in_hand = []

    def _linger_after(self, messages: int) -> float:
        self._recent.add(messages, now=asyncio.get_running_loop().time())
        if self._linger.idle_s is not None and self._recent.are_few:
            return min(self._linger.idle_s, self._linger.quiet_s)
        return self._linger.after(messages, size=self._size)

    async def _store_batch(self, messages: list[Msg]) -> None:
        try:
            await self._patiently(messages)
            return
        except Exception as error:  # whatever it is, each message gets its own chance
            log.warning("a batch failed, storing one by one", consumer=self._consumer.stream, error=repr(error)[:500])
        for message in messages:
            try:
                await self._alone(message)
            except Exception as error:  # whatever it is, the loop must outlive it: no other task reads these messages
                self._trouble = (str(error) or type(error).__name__)[:500]
                self._trouble_until = asyncio.get_running_loop().time() + TROUBLE_ACK_WAITS * self._ack_wait_s
                log.error("a message is left to come again", subject=message.subject, error=self._trouble)
                await self._beat()

    async def _alone(self, message: Msg) -> None:
        """Store one message, give it back or put it aside. Raises when not even that can be done."""
        try:
            await self._patiently([message])
        except _NoLetter:
            raise
        except Exception as error:
            # Without the traceback: its locals are a job's content.
            log.error("a message cannot be stored", subject=message.subject, error=repr(error)[:500])
            delivery = Delivery.of(message)
            if self._comes_again(error, delivery.deliveries):
                await _send(message.nak(delay=min(NAK_MAX_S, RETRY_S * 2 ** min(delivery.deliveries, DOUBLINGS_MAX))))
                return
            await self._put_aside(message, "undeliverable", f"{type(error).__name__}: {error}")
            await _send(message.ack())

    async def _put_aside(self, message: Msg, code: str, reason: str) -> None:
        try:
            await self._bus.put_aside(Delivery.of(message), code=code, reason=reason)
        except Exception as error:
            raise _NoLetter(f"no dead letter could be stored: {error}") from error

    def _comes_again(self, error: Exception, deliveries: int) -> bool:
        """Return whether another delivery may help: always while something is away, as long as the server delivers."""
        unbounded = self._consumer.max_deliver < 0
        if unbounded and isinstance(error, Retry):
            return True
        tries = ALONE_TRIES if unbounded else min(ALONE_TRIES, self._consumer.max_deliver)
        return deliveries < tries and not isinstance(error, self._errors.refused)

    async def _patiently(self, messages: list[Msg]) -> None:
        """Store and ack; while the store is away, wait: an outage must not use up deliveries."""
        waited_s = 0.0
        while True:
            try:
                await self._once(messages)
                return
            except self._errors.away as error:
                log.warning("waiting", consumer=self._consumer.stream, why=str(error) or type(error).__name__)
                if self._stopping:
                    # They were not acked: they come again, to a process that runs then.
                    return
            await asyncio.sleep(RETRY_S)
            waited_s += RETRY_S
            if waited_s >= self._ack_wait_s / 3:
                waited_s = 0.0
                await self._beat()

    async def _beat(self) -> None:
        """Keep all that is here, also what waits for its turn: each redelivery would use one up."""
        for message in [*self._in_hand, *self._batch]:
            if not message.is_acked:
                await _send(message.in_progress())

    async def _once(self, messages: list[Msg]) -> None:
        items: list[T] = []
        for message in messages:
            try:
                item = await self._read(message)
            except Reject as error:
                await self._put_aside(message, error.code, str(error))
                continue
            # What is nobody's to store is acked with the others.
            if item is not None:
                items.append(item)
        reach(self._failpoints.store_before)
        if items:
            await self._store(items)
        reach(self._failpoints.store_after)
        await _send(self._bus.nc.ack_all(messages))
        reach(self._failpoints.ack_after)
        metrics.messages_handled.labels(self._bus.service, self._consumer.subject, "ok").inc(len(items))


class _NoLetter(Exception):
    """A message must be put aside and cannot be: it is not acked, so that it comes again."""


async def _send(answer: Awaitable[None]) -> None:
    """Answer the server; without a connection nothing is lost, as the message comes again."""
    with suppress(nats_errors.Error):
        await answer
