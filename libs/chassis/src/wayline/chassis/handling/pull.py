"""Pulls messages of one durable consumer into free slots: never more than can be started at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import orjson
import structlog
from nats import errors as nats_errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from wayline.chassis.concurrency.awaited_tasks import stopped
from wayline.chassis.connection.bus import Bus
from wayline.chassis.connection.delivery import left_behind
from wayline.chassis.nats_client import callback_subscription
from wayline.chassis.topology import Consumer
from wayline.contracts import headers as h
from wayline.telemetry import metrics

log = structlog.get_logger()

ASK_S = 20.0
"""How long one pull request waits at the server for messages."""
CLEAN_UP_S = 5.0
"""How long a handler that was cut short may take to give its message back."""
ADDED_PER = 8
"""One slot is added for so many where two consumers share them."""
COMING_WITHIN_S = 0.2
"""How long a slot is kept for a message that its consumer had when the last one came."""
RETRY_S = 0.5
"""The pause after an error status (no such consumer, no responders), so that asking is no hot loop."""


class Pull:
    """Asks for as many messages of one consumer as there are free slots, and hands each over as it comes.

    A busy process that asked for more would hoard messages that an idle one could run.
    """

    def __init__(
        self,
        bus: Bus,
        consumer: Consumer,
        take: Callable[[Msg], None],
        *,
        slots: int,
        room: Callable[[], int] | None = None,
        ask_max: int | None = None,
    ) -> None:
        self._bus = bus
        self._consumer = consumer
        self._take = take
        self._room = room or (lambda: slots - self.taken)
        self._slots = slots
        self._ask_max = ask_max or slots
        self._asked = 0
        self._more = 0
        """Messages that the consumer had yet to deliver when the last one came; kept of one that has precedence."""
        self._heard_at = 0.0
        """When the last one came, or was asked for."""
        self.taken = 0
        """Slots whose messages are being handled."""
        self._stopping = self._held = False
        self._subscription: Subscription | None = None
        self._inbox = ""
        self._watchdog: asyncio.TimerHandle | None = None
        self._requests: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._next = f"{self._bus.api}.CONSUMER.MSG.NEXT.{self._consumer.stream}.{self._consumer.name}"
        await self._listen()
        self._bus.reconnected.append(self._start_over)
        self.ask()

    async def stop(self) -> None:
        """Ask for no more, give back messages on their way, and unsubscribe."""
        self._stopping = True
        if self._watchdog:
            self._watchdog.cancel()
        if self._start_over in self._bus.reconnected:
            self._bus.reconnected.remove(self._start_over)
        if self._subscription is not None:
            await callback_subscription.leave(self._bus.nc, self._subscription)

    async def hold(self) -> None:
        """Ask for no more for now, and give back what is on its way."""
        self._held = True
        await self._listen()

    def release(self) -> None:
        """Ask again."""
        self._held = False
        self.ask()

    async def _listen(self) -> None:
        """Subscribe to a new inbox for the next requests, and drop the answers to earlier ones."""
        inbox = self._bus.nc.new_inbox()
        subscription = await callback_subscription.subscribe(self._bus.nc, inbox, partial(self._on_message, inbox))
        before, self._subscription = self._subscription, subscription
        self._inbox, self._asked = inbox, 0
        if before is not None:
            await callback_subscription.leave(self._bus.nc, before)

    def free(self, slots: int = 1) -> None:
        """Free slots whose messages are handled, and ask for as many again."""
        self.taken -= slots
        self.ask()

    def ask(self) -> None:
        """Ask for as many messages as there is room for."""
        ask_max = max(self._ask_max, min(self._more, self._slots))
        want = min(self._room(), ask_max) - self._asked
        # Topping up a quarter at a time costs one request for many messages, and an idle slot never waits for it:
        # while anything is asked for, an arriving message finds it.
        if self._stopping or self._held or want <= 0 or (self._asked and want < ask_max // 4):
            return
        self._asked += want
        self._heard_at = asyncio.get_running_loop().time()
        request = orjson.dumps({"batch": want, "expires": int(ASK_S * 1e9)})
        self._soon(self._publish(request, self._inbox))
        if self._watchdog:
            self._watchdog.cancel()
        self._watchdog = asyncio.get_running_loop().call_later(ASK_S + 2, self._start_over)

    @property
    def coming(self) -> int:
        """Return how many messages are on their way; none where another process seems to have had them."""
        late = asyncio.get_running_loop().time() - self._heard_at > COMING_WITHIN_S
        return 0 if late else min(self._asked, self._more)

    def _soon(self, doing: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(doing)
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    async def _publish(self, request: bytes, inbox: str) -> None:
        try:
            await self._bus.nc.publish(self._next, request, reply=inbox)
        except nats_errors.Error as error:
            log.warning("pull request not sent", consumer=self._consumer.name, error=str(error))
            self._later()

    def _start_over(self) -> None:
        """Forget the open requests, which a restarted server does not know, and ask again."""
        self._soon(self._ask_anew())

    async def _ask_anew(self) -> None:
        # A server that did not restart still knows them and would send more messages than we have slots for; it drops
        # them once their inbox has no subscriber.
        try:
            await self._listen()
        except nats_errors.Error as error:
            log.warning("pull not begun anew", consumer=self._consumer.name, error=str(error))
        self.ask()

    def _later(self) -> None:
        self._asked = 0
        asyncio.get_running_loop().call_later(RETRY_S, self.ask)

    def _on_message(self, inbox: str, message: Msg) -> None:
        # A sender may set `Status` too, but only the server's own messages have no reply subject.
        status = message.headers.get("Status") if message.headers and not message.reply else None
        if status is not None:
            if inbox == self._inbox:
                self._on_status(status, message.headers or {})
            return
        if inbox == self._inbox:
            self._asked = max(0, self._asked - 1)
        if self._ask_max < self._slots:
            self._more, self._heard_at = left_behind(message), asyncio.get_running_loop().time()
        given_up = self._stopping or self._held
        if given_up or self._room() <= 0:
            # Where there is no room just now it would come straight back, and each time counts as a failed delivery.
            self._soon(message.nak(delay=None if given_up else RETRY_S))
            return
        self.taken += 1
        self._take(message)
        self.ask()

    def _on_status(self, status: str, headers: dict[str, str]) -> None:
        if status == "100":
            return
        left = headers.get("Nats-Pending-Messages")
        if left is not None:
            self._asked = max(0, self._asked - int(left))
            self.ask()
            return
        metrics.bus_errors.labels(self._bus.service, f"pull {status}").inc()
        self._later()


class Puller:
    """Keeps `slots` handlers busy, each a task of its own.

    With a `backlog`, the consumer has precedence over it. Some slots are added then: of all, neither takes more than
    `slots`, so that each finds some that the other cannot have.
    """

    def __init__(
        self,
        bus: Bus,
        consumer: Consumer,
        handle: Callable[[Msg], Coroutine[Any, Any, None]],
        *,
        slots: int,
        backlog: Consumer | None = None,
    ) -> None:
        self._consumer = consumer
        self._handle = handle
        self._slots = slots
        self._added = 0 if backlog is None else max(1, slots // ADDED_PER)
        # Two pulls that each asked for every free slot would be sent twice as many messages as there are slots.
        ask_max = self._added or None
        self._pull = Pull(bus, consumer, self._begin, slots=slots, room=self._room, ask_max=ask_max)
        self._pulls = [self._pull]
        if backlog is not None:
            self._pulls.append(
                Pull(bus, backlog, self._begin_backlog, slots=slots, room=self._backlog_room, ask_max=ask_max)
            )
        self._kept: asyncio.TimerHandle | None = None
        """Has the backlog asked for what was kept for a message that did not come."""
        self._running: dict[asyncio.Task[None], Pull] = {}
        self._turns: set[asyncio.Task[Any]] = set()
        """Those whose message has had its turn before others of the backlog, and so counts as one of it."""
        self._aside: set[asyncio.Task[Any]] = set()
        self._is_held = False
        self._rest: asyncio.TimerHandle | None = None

    @property
    def running(self) -> int:
        return len(self._running)

    async def start(self) -> None:
        for pull in self._pulls:
            await pull.start()

    async def stop(self, grace_s: float) -> None:
        """Ask for no more, and cancel the handlers that have not ended within `grace_s`."""
        if self._kept is not None:
            self._kept.cancel()
        for pull in self._pulls:
            await pull.stop()
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=grace_s)
            await stopped(*late, again_s=CLEAN_UP_S)

    async def hold(self) -> None:
        """Take no more messages in; the handlers that run go on."""
        self._is_held = True
        for pull in self._pulls:
            await pull.hold()

    def release(self) -> None:
        """Take messages in again."""
        self._is_held = False
        for pull in self._pulls:
            pull.release()

    async def rest(self, for_s: float) -> None:
        """Take no more messages in for a while, from the last time on that this is said."""
        resting, self._rest = self._rest, asyncio.get_running_loop().call_later(for_s, self._end_rest)
        if resting is not None:
            resting.cancel()
            return
        for pull in self._pulls:
            await pull.hold()

    def _end_rest(self) -> None:
        self._rest = None
        if not self._is_held:
            self.release()

    def free_slot(self) -> None:
        """Take another message in: the handler that calls this goes on without a slot."""
        task = asyncio.current_task()
        assert task is not None
        self._aside.add(task)
        self._turns.discard(task)
        self._free(self._running[task])

    @property
    def _taken(self) -> int:
        return sum(pull.taken for pull in self._pulls)

    def _room(self) -> int:
        # The slots of those that had their turn are the backlog's: they take none from the consumer's own.
        return min(self._slots - self._pull.taken + len(self._turns), self._slots + self._added - self._taken)

    def _backlog_room(self) -> int:
        # A slot that is freed beyond `slots` is the preferred consumer's: the backlog waits until it leaves some free.
        # So is one for which a message of that is on its way.
        own = self._pulls[1].taken + len(self._turns)
        return max(self._slots - self._taken - self._pull.coming, self._added - own)

    def _begin(self, message: Msg) -> None:
        task = self._run(message, self._pull)
        if message.headers and h.TURN in message.headers:
            self._turns.add(task)

    def _begin_backlog(self, message: Msg) -> None:
        self._run(message, self._pulls[1])

    def _run(self, message: Msg, pull: Pull) -> asyncio.Task[None]:
        task = asyncio.create_task(self._handle(message))
        self._running[task] = pull
        task.add_done_callback(self._done)
        return task

    def _free(self, pull: Pull) -> None:
        pull.free()
        for other in self._pulls:
            if other is not pull:
                other.ask()
        if self._pull.coming and (self._kept is None or self._kept.when() <= asyncio.get_running_loop().time()):
            self._kept = asyncio.get_running_loop().call_later(2 * COMING_WITHIN_S, self._pulls[1].ask)

    def _done(self, task: asyncio.Task[None]) -> None:
        pull = self._running.pop(task)
        self._turns.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("handler ended with an error", consumer=self._consumer.name, error=repr(error), exc_info=error)
        if task in self._aside:
            self._aside.discard(task)
        else:
            self._free(pull)
