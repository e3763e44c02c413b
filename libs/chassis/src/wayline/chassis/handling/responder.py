"""Answers requests on core NATS: read, trace, handle, reply; an error is a typed reply, never a silence."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import structlog
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from pydantic import BaseModel

from wayline.chassis.claim_check.claims import MESSAGE_MAX
from wayline.chassis.claim_check.large_replies import WORD
from wayline.chassis.concurrency.awaited_tasks import stopped
from wayline.chassis.connection.bus import Bus
from wayline.chassis.handling.handler_metrics import HandlerMetrics
from wayline.chassis.handling.request_turns import RequestTurns
from wayline.chassis.nats_client import callback_subscription
from wayline.contracts import headers as h
from wayline.contracts.base import Message, Request
from wayline.contracts.errors import Bug, Retry, WaylineError
from wayline.telemetry import Telemetry, names

log = structlog.get_logger()

HELD_MAX_BYTES = 64 * 1024 * 1024
"""Of requests of one kind, with those that wait for a slot; further ones are refused with Retry."""
REQUEST_BYTES = 4 * 1024
"""About what a request takes beside its body."""

M = TypeVar("M", bound=Message)
Answer = Callable[[M], Awaitable[BaseModel | None]]


@dataclass(frozen=True)
class Ask(Generic[M]):
    """A handler bound to a request or another message; with `everyone` each replica hears it."""

    message: type[M]
    handle: Answer[M]
    slots: int = 64
    everyone: bool = False
    subject: str | None = None
    """What of the message's subjects is heard; None: all of them."""


class Responder(Generic[M]):
    """One service's answers to one kind of request, shared with its replicas by a queue group unless all answer."""

    def __init__(self, bus: Bus, telemetry: Telemetry, ask: Ask[M]) -> None:
        self._bus = bus
        self._telemetry = telemetry
        self._ask = ask
        self._turns = RequestTurns(ask.slots, held_max_bytes=HELD_MAX_BYTES)
        self._running: set[asyncio.Task[None]] = set()
        self._subscription: Subscription | None = None
        self._metrics = HandlerMetrics(bus.service, ask.message.subject_template)

    @property
    def in_hand(self) -> int:
        return 0 if self._ask.everyone else len(self._running)

    async def hold(self) -> None:
        """Leave requests to other replicas, but for those that each of them answers."""
        subscription, self._subscription = self._subscription, None if not self._ask.everyone else self._subscription
        if subscription is not None and not self._ask.everyone:
            await callback_subscription.leave(self._bus.nc, subscription)

    async def release(self) -> None:
        """Answer requests again."""
        if self._subscription is None:
            await self.start()

    async def start(self) -> None:
        queue = "" if self._ask.everyone else self._bus.service
        subject = self._ask.subject or self._ask.message.listens()
        self._subscription = await callback_subscription.subscribe(self._bus.nc, subject, self._on_message, queue=queue)

    async def stop(self, grace_s: float) -> None:
        """Unsubscribe, and answer the requests received so far."""
        # A second signal stops once more what the first had begun to stop.
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            await callback_subscription.leave(self._bus.nc, subscription)
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=grace_s)
            await stopped(*late)

    def _on_message(self, raw: Msg) -> None:
        task = asyncio.create_task(self._in_turn(raw))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _in_turn(self, raw: Msg) -> None:
        size, tenant = REQUEST_BYTES + len(raw.data), self._tenant(raw)
        if not self._turns.has_room(tenant, size):
            return await self._turn_away(raw)
        try:
            async with self._turns.turn(tenant, size):
                await self._answer(raw)
        except asyncio.CancelledError:
            # The grace is over; without a reply the client would wait for its timeout.
            await self._refuse(raw, Retry(f"{self._bus.service} is being stopped: ask again"))

    def _tenant(self, raw: Msg) -> str:
        return self._ask.message.address(raw.subject).get("tenant", "-")

    async def _turn_away(self, raw: Msg) -> None:
        self._metrics.count("turned away")
        await self._refuse(raw, Retry(f"{self._bus.service} has too many requests waiting: ask again later"))

    async def _refuse(self, raw: Msg, error: WaylineError) -> None:
        if raw.reply:
            await self._reply(raw, error.problem(), {h.ERROR: error.code})

    async def _answer(self, raw: Msg) -> None:
        template = self._ask.message.subject_template
        started, outcome = time.perf_counter(), "ok"
        try:
            with self._telemetry.handling(template, raw.headers, attributes={names.MESSAGING_DESTINATION: template}):
                answer = await self._ask.handle(await self._bus.hear(self._ask.message, raw))
            if raw.reply and answer is not None:
                await self._reply(raw, answer, {})
        except asyncio.CancelledError:
            outcome = "cut short"
            raise
        except Exception as error:
            # Not kept in a variable here: it would keep itself, and with its frames the answer.
            outcome = await self._fail(raw, error)
        finally:
            self._metrics.measure(outcome, started=started)

    async def _fail(self, raw: Msg, error: Exception) -> str:
        """Answer with an error, and return its code; log what is a fault of ours."""
        service = self._bus.service
        known = error if isinstance(error, WaylineError) else Bug(f"{service} failed: {type(error).__name__}")
        if isinstance(known, Bug):
            subject = self._ask.message.subject_template
            log.error("request failed", service=service, subject=subject, error=repr(error), exc_info=error)
        await self._refuse(raw, known)
        return known.code

    async def _reply(self, raw: Msg, answer: BaseModel, headers: dict[str, str]) -> None:
        body = _encode(answer)
        if len(body) > MESSAGE_MAX:
            tenant = self._tenant(raw)
            if (raw.headers or {}).get(h.REPLIES) == WORD:
                body = await self._bus.replies.check_in(body, tenant)
                headers[h.CLAIMS] = WORD
            else:
                # A version before this one asks: it reads what is kept for days, and nothing else.
                body, _ = await self._bus.claims.check_in(body, f"{tenant}/replies")
                headers[h.CLAIMS] = "1"
        await self._bus.nc.publish(raw.reply, body, headers=headers or None)


def _encode(answer: BaseModel) -> bytes:
    return answer.__pydantic_serializer__.to_json(answer)


def asks(request: type[Request], handle: Answer[Any], *, slots: int = 64, everyone: bool = False) -> Ask[Any]:
    """Bind a handler to a request; with `everyone` each replica answers, else any one of them."""
    return Ask(request, handle, slots, everyone)


def hears(message: type[Message], handle: Answer[Any]) -> Ask[Any]:
    """Bind a handler to a message that every replica receives and none answers."""
    return Ask(message, handle, everyone=True)
