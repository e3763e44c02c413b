"""Runs one handler on one work queue: read, trace, handle, publish, ack; what cannot be handled is put aside."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

import structlog
from nats import errors as nats_errors
from nats.aio.msg import Msg

from wayline.chassis.claim_check.claims import PayloadMissing
from wayline.chassis.connection.bus import Bus
from wayline.chassis.connection.delivery import Delivery
from wayline.chassis.connection.received import has_claims
from wayline.chassis.handling.ack_wait import ack_wait
from wayline.chassis.handling.handler_metrics import HandlerMetrics
from wayline.chassis.handling.heartbeat import Heartbeat
from wayline.chassis.handling.pull import Puller
from wayline.chassis.handling.tenant_slots import HeldMessage, TenantSlots
from wayline.chassis.settings import BusSettings
from wayline.chassis.topology import Consumer
from wayline.contracts.base import Message
from wayline.contracts.errors import Deferred, Full, Reject, Retry
from wayline.telemetry import JobTrace, Telemetry, metrics, names

log = structlog.get_logger()

ATTEMPTS_MAX = 20
"""Failures after which a message is given up whose handler keeps raising something unexpected, and deliveries after
which it is counted how often its handler begins."""
BEGUN_MAX = 5
"""How often a handler may begin after so many deliveries without an end: it kills its process."""
FAILURES_REMEMBERED = 10_000
"""Messages whose failures one process counts."""
NAK_FIRST_S = 0.2
NAK_MAX_S = 30.0
WAIT_MAX_S = 15.0
"""The longest pause between two tries while something is away."""
HELD_MAX_S = 15.0
"""How long a message is held while something is away, before another replica may try."""
REST_S = 2.0
"""How long a replica takes nothing after that: the bus might send it the same message again."""
TRIES_ALIKE = 4
"""Tries after which such a pause doubles."""
HANDED_BACK_S = 5.0
"""How long a message rests whose tenant has too many waiting; multiplied by its deliveries."""
DOUBLINGS_MAX = 16
"""Enough to reach NAK_MAX_S; a message left to a newer build may come a thousand times, and 2**1024 is not a float."""


M = TypeVar("M", bound=Message)
R = TypeVar("R")
Handler = Callable[[M, Delivery], Awaitable[Sequence[Message] | None]]
"""Handles one message and returns the messages to publish; the worker publishes them and acks."""


def _nothing() -> None:
    return None


class BegunHandlers(Protocol):
    """A table of handlers that have begun with a message, and have not ended."""

    async def count(self, delivery: Delivery) -> int:
        """Count that a handler begins, before it does; return how many have begun and not ended. Raises Retry."""
        ...

    async def take_back(self, delivery: Delivery) -> None:
        """Count it no more: it has ended, however that was. Raises Retry."""
        ...


@dataclass(frozen=True)
class Work(Generic[M]):
    """A handler bound to a work queue."""

    consumer: Consumer
    message: type[M]
    handle: Handler[M]
    slots: int = 32
    attempts_max: int | None = None
    """Failures after which a message is given up; None: ATTEMPTS_MAX."""
    begun: BegunHandlers | None = None
    """Counts the handlers of a message of many deliveries that began and never ended; None: each delivery counts, also
    one that a restart has spent."""
    job_trace: Callable[[M, Delivery], JobTrace | None] | None = None
    """The job's own trace that a message belongs to; None: it goes on in its sender's."""
    before_dead: Callable[[Delivery, str, str], Awaitable[None]] | None = None
    """What else to do, with the code and the reason, before a message is put aside."""
    after_publish: Callable[[], None] = _nothing
    after_ack: Callable[[], None] = _nothing
    """Called for fault tests."""


class Worker(Generic[M]):
    """One service's hold on one work queue."""

    def __init__(self, bus: Bus, telemetry: Telemetry, work: Work[M], settings: BusSettings) -> None:
        self._bus = bus
        self._telemetry = telemetry
        self._work = work
        self._stopping = asyncio.Event()
        self._puller = Puller(bus, work.consumer, self._on_message, slots=work.slots)
        self._slots = TenantSlots(
            work.slots,
            share=settings.tenant_slots_share,
            waiting_per_tenant_max=settings.waiting_per_tenant_max,
        )
        self._metrics = HandlerMetrics(bus.service, work.message.subject_template)
        self._heartbeat = Heartbeat(work.consumer.ack_wait_s / 3)
        attempts_max = ATTEMPTS_MAX if work.attempts_max is None else work.attempts_max
        unbounded = work.consumer.max_deliver < 0
        self._attempts_max = attempts_max if unbounded else min(attempts_max, work.consumer.max_deliver)
        # An outage must not use up the deliveries of such a message.
        self._counts_deliveries = not unbounded or (work.before_dead is not None and work.begun is None)
        self._failures = Failures()

    async def start(self) -> None:
        self._heartbeat.every_s = await ack_wait(self._bus, self._work.consumer) / 3
        await self._puller.start()

    @property
    def in_hand(self) -> int:
        return self._puller.running

    async def hold(self) -> None:
        """Take no more messages."""
        await self._puller.hold()

    async def release(self) -> None:
        """Take messages again."""
        self._puller.release()

    async def stop(self, grace_s: float) -> None:
        self._stopping.set()
        await self._puller.stop(grace_s)
        self._heartbeat.stop()

    async def _on_message(self, raw: Msg) -> None:
        work, delivery = self._work, Delivery.of(raw)
        started, outcome, counted = time.perf_counter(), "ok", False
        self._heartbeat.begin(raw)
        try:
            if work.before_dead and delivery.deliveries > self._attempts_max:
                await self._require_safe(delivery)
                counted = work.begun is not None
            tenant = work.message.address(raw.subject).get("tenant", "")
            held = HeldMessage(tenant, len(raw.data), self._puller.free_slot)
            with self._slots.known(held):
                await self._handle(await self._hear(raw, delivery, held), delivery, held)
            await raw.ack()
            self._failures.forget(delivery.sequence)
            work.after_ack()
        except _HandBack as handed:
            outcome = "handed back"
            if handed.rests and not self._stopping.is_set():
                with suppress(nats_errors.Error):
                    await self._puller.rest(REST_S)
            await _send(raw.nak(delay=handed.after_s))
        except Reject as error:
            outcome = error.code
            await self._put_aside(raw, delivery, error.code, str(error))
        except (asyncio.CancelledError, _Stopping):
            outcome = "handed back"
            await _send(raw.nak())
        except Exception as error:
            outcome = type(error).__name__
            await self._failed(raw, delivery, error)
        finally:
            if counted:
                await self._take_back(delivery)
            self._heartbeat.end(raw)
            self._metrics.measure(outcome, started=started)

    async def _require_safe(self, delivery: Delivery) -> None:
        """Refuse a message that kills its handlers, and with them everybody else's messages: reading it may kill.

        Deliveries alone do not tell: restarts spend them on messages whose handlers never began.
        """
        begun = None
        if self._work.begun is not None:
            begun = await self._wait_out(partial(self._work.begun.count, delivery))
            if begun <= BEGUN_MAX:
                return
        times = f"{delivery.deliveries - 1} deliveries" if begun is None else f"{begun - 1} handlers that began"
        raise Reject(f"none of {times} ended: its handlers died", code="undeliverable")

    async def _take_back(self, delivery: Delivery) -> None:
        """Let a handler that has ended count no more as one that died."""
        assert self._work.begun is not None
        with suppress(Retry):
            await self._work.begun.take_back(delivery)

    async def _hear(self, raw: Msg, delivery: Delivery, held: HeldMessage) -> M:
        hearing = partial(self._bus.hear, self._work.message, raw)
        # Only large fields have to be waited for.
        return await (self._in_turn(hearing, delivery, held) if has_claims(raw) else hearing())

    async def _handle(self, message: M, delivery: Delivery, held: HeldMessage) -> None:
        work = self._work
        job_trace = work.job_trace(message, delivery) if work.job_trace else None
        attributes = {
            names.MESSAGING_DESTINATION: work.message.subject_template,
            names.NATS_DELIVERIES: delivery.deliveries,
        }
        with self._telemetry.handling(
            work.message.subject_template, delivery.headers, job_trace=job_trace, attributes=attributes
        ):
            outgoing = await self._in_turn(lambda: work.handle(message, delivery), delivery, held)
            for n, out in enumerate(outgoing or ()):
                msg_id = out.msg_id or f"{self._bus.service}:{delivery.sequence}:{n}"
                await self._wait_out(partial(self._bus.publish, out, msg_id=msg_id))
            if outgoing:
                work.after_publish()

    async def _in_turn(self, doing: Callable[[], Awaitable[R]], delivery: Delivery, held: HeldMessage) -> R:
        """Handle a message in its turn; while something is away, give its slot to another message."""
        tries, long_at = 0, asyncio.get_running_loop().time() + HELD_MAX_S
        while True:
            try:
                await self._slots.take_turn(held)
                try:
                    return await doing()
                finally:
                    self._slots.end_turn(held)
            except PayloadMissing:
                # It may never come: its waits are counted.
                raise
            except Full as error:
                await self._wait(error, after_s=error.after_s)
            except Retry as error:
                tries += 1
                again = delivery.deliveries <= self._attempts_max // 2
                if not self._slots.step_aside(held) and again:
                    # Its tenant has as many in hand as it may; what comes back later leaves room for others'.
                    raise _HandBack(after_s=HANDED_BACK_S * delivery.deliveries) from None
                if again and not self._counts_deliveries and asyncio.get_running_loop().time() >= long_at:
                    # Another replica may reach what this one does not: its zone is cut off, the others' are not.
                    raise _HandBack(after_s=NAK_FIRST_S, rests=not isinstance(error, Deferred)) from None
                await self._wait(error, after_s=min(WAIT_MAX_S, error.after_s * 2 ** (tries // TRIES_ALIKE)))

    async def _wait(self, error: Retry, *, after_s: float) -> None:
        """Wait for what is away or full. Raises _Stopping when the service stops meanwhile."""
        log.warning("waiting", service=self._bus.service, why=str(error))
        metrics.waiting.labels(self._bus.service, self._work.message.subject_template).inc()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), after_s)
        if self._stopping.is_set():
            raise _Stopping from None

    async def _wait_out(self, doing: Callable[[], Awaitable[R]]) -> R:
        """Do it again while something is away or full, which must not count as a failed delivery."""
        while True:
            try:
                return await doing()
            except PayloadMissing:
                # It may never come: its waits are counted.
                raise
            except Retry as error:
                await self._wait(error, after_s=error.after_s)

    async def _failed(self, raw: Msg, delivery: Delivery, error: Exception) -> None:
        log.error(
            "handler failed", service=self._bus.service, subject=delivery.subject, error=repr(error), exc_info=error
        )
        failures = self._failures.count(delivery.sequence)
        most = self._work.consumer.max_deliver
        if failures < self._attempts_max and not 0 <= most <= delivery.deliveries:
            await _send(raw.nak(delay=pause_s(failures)))
            return
        self._failures.forget(delivery.sequence)
        await self._put_aside(raw, delivery, "undeliverable", f"{type(error).__name__}: {error}")

    async def _put_aside(self, raw: Msg, delivery: Delivery, code: str, reason: str) -> None:
        """Write a dead letter for a message and ack it; hand the message back when the service stops first."""
        try:
            await self._wait_out(lambda: self._write_letter(delivery, code, reason))
            await raw.ack()
        except (asyncio.CancelledError, _Stopping):
            await _send(raw.nak())

    async def _write_letter(self, delivery: Delivery, code: str, reason: str) -> None:
        if self._work.before_dead:
            try:
                await self._work.before_dead(delivery, code, reason)
            except Retry:
                raise
            except Exception as error:
                # The letter tells of it: the message must not come back for ever because of it.
                log.error("not done before a dead letter", subject=delivery.subject, error=repr(error), exc_info=error)
                reason = f"{reason}; and before it was put aside: {error!r}"
        await self._bus.put_aside(delivery, code=code, reason=reason)


class Failures:
    """How often the handlers of messages have failed in this process; a message that came and went is no failure."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def count(self, sequence: int) -> int:
        """Count a failure, and return how many there were with it."""
        if len(self._counts) >= FAILURES_REMEMBERED:
            # The oldest: forgotten too early, a message is tried longer.
            del self._counts[next(iter(self._counts))]
        self._counts[sequence] = found = self._counts.pop(sequence, 0) + 1
        return found

    def forget(self, sequence: int) -> None:
        """Forget a message that is done."""
        self._counts.pop(sequence, None)


def pause_s(deliveries: int) -> float:
    """Return the pause after a message's n-th failure: it doubles, up to NAK_MAX_S."""
    return min(NAK_MAX_S, NAK_FIRST_S * 2 ** min(deliveries - 1, DOUBLINGS_MAX))


class _HandBack(Exception):
    """The message shall come again later."""

    def __init__(self, *, after_s: float, rests: bool = False) -> None:
        super().__init__()
        self.after_s = after_s
        self.rests = rests


class _Stopping(Exception):
    """The service is being stopped while a message waits for a dependency."""


async def _send(ack_or_nak: Awaitable[None]) -> None:
    """Send an ack or a nak; without a connection the server redelivers the message by itself."""
    with suppress(nats_errors.Error):
        await ack_or_nak
