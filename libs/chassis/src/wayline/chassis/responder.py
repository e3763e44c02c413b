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

from wayline.chassis import straight
from wayline.chassis.bus import Bus
from wayline.chassis.tasks import stopped
from wayline.contracts import headers as h
from wayline.contracts.base import Message, Request
from wayline.contracts.errors import Bug, WaylineError
from wayline.telemetry import Telemetry, metrics, names

log = structlog.get_logger()

M = TypeVar("M", bound=Message)
Answer = Callable[[M], Awaitable[BaseModel | None]]


@dataclass(frozen=True)
class Ask(Generic[M]):
    """A handler bound to a request, or to a message that every replica hears (`everyone`)."""

    message: type[M]
    handle: Answer[M]
    slots: int = 64
    everyone: bool = False


class Responder(Generic[M]):
    """One service's answers to one kind of request, shared with its replicas by a queue group."""

    def __init__(self, bus: Bus, telemetry: Telemetry, ask: Ask[M]) -> None:
        self._bus = bus
        self._telemetry = telemetry
        self._ask = ask
        self._slots = asyncio.Semaphore(ask.slots)
        self._running: set[asyncio.Task[None]] = set()
        self._subscription: Subscription | None = None

    async def start(self) -> None:
        queue = "" if self._ask.everyone else self._bus.service
        subject = self._ask.message.listens()
        self._subscription = await straight.subscribe(self._bus.nc, subject, self._on_message, queue=queue)

    async def stop(self, grace_s: float) -> None:
        """Hear no more; answer what was heard."""
        if self._subscription is not None:
            await self._subscription.drain()
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=grace_s)
            await stopped(*late)

    def _on_message(self, raw: Msg) -> None:
        task = asyncio.create_task(self._in_turn(raw))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _in_turn(self, raw: Msg) -> None:
        async with self._slots:
            await self._answer(raw)

    async def _answer(self, raw: Msg) -> None:
        template, service = self._ask.message.subject_template, self._bus.service
        started, outcome = time.perf_counter(), "ok"
        try:
            with self._telemetry.handling(template, raw.headers, attributes={names.MESSAGING_DESTINATION: template}):
                answer = await self._ask.handle(await self._bus.hear(self._ask.message, raw))
            if raw.reply and answer is not None:
                await self._reply(raw, answer)
        except Exception as error:
            known = error if isinstance(error, WaylineError) else Bug(f"{service} failed: {type(error).__name__}")
            outcome = known.code
            if known is not error or isinstance(error, Bug):
                log.error("request failed", service=service, subject=template, error=repr(error), exc_info=error)
            if raw.reply:
                await self._bus.nc.publish(
                    raw.reply, known.problem().model_dump_json().encode(), headers={h.ERROR: known.code}
                )
        finally:
            metrics.messages_handled.labels(service, template, outcome).inc()
            metrics.handling_seconds.labels(service, template).observe(time.perf_counter() - started)

    async def _reply(self, raw: Msg, answer: BaseModel) -> None:
        tenant = self._ask.message.address(raw.subject).get("tenant", "-")
        body, claimed = await self._bus.claims.check_in(_encode(answer), f"{tenant}/replies")
        await self._bus.nc.publish(raw.reply, body, headers={h.CLAIMS: "1"} if claimed else None)


def _encode(answer: BaseModel) -> bytes:
    return answer.__pydantic_serializer__.to_json(answer)


def asks(request: type[Request], handle: Answer[Any], *, slots: int = 64) -> Ask[Any]:
    """Bind a handler to a request that it answers."""
    return Ask(request, handle, slots)


def hears(message: type[Message], handle: Answer[Any]) -> Ask[Any]:
    """Bind a handler to a message that every replica hears and nobody answers."""
    return Ask(message, handle, everyone=True)
