"""Requests to services on the bus that may work for minutes: heartbeats come before the answer."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import suppress
from dataclasses import dataclass, field

from nats import errors as nats_errors
from nats.aio.msg import Msg
from pydantic import ValidationError

from wayline.chassis import Bus
from wayline.chassis.connection.requests import has_no_responders
from wayline.chassis.nats_client import callback_subscription
from wayline.contracts import headers as h
from wayline.contracts.base import Message
from wayline.contracts.tools import ToolProgress
from wayline.tool_registry.calls.tool_servers import TellProgress
from wayline.tool_registry.errors import AnswerLost, NotBegun, TimedOut


@dataclass
class _PendingRequest:
    """A request that was sent, and when anything of it was heard last."""

    heard_at: float
    tell: TellProgress | None
    answer: asyncio.Future[Msg] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def left_s(self, until: float, silent_max_s: float) -> float:
        """Return how long to wait on, if nothing more is heard."""
        return min(until, self.heard_at + silent_max_s) - asyncio.get_running_loop().time()


class BusCalls:
    """Sends requests and waits for their answers for as long as heartbeats come."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._waiting: dict[str, _PendingRequest] = {}
        self._numbers = itertools.count(1)
        self._inbox = ""
        self._opening = asyncio.Lock()
        self._sending: set[asyncio.Task[None]] = set()

    async def ask(
        self,
        subject: str,
        body: bytes,
        headers: dict[str, str],
        *,
        timeout_s: float,
        silent_max_s: float,
        tell: TellProgress | None = None,
    ) -> Msg:
        """Return the answer to a request; `tell` hears how far it is. Raises NotBegun, AnswerLost or TimedOut."""
        loop = asyncio.get_running_loop()
        if not self._bus.nc.is_connected:
            raise NotBegun("the bus is away")
        await self._open()
        number, waiting = str(next(self._numbers)), _PendingRequest(loop.time(), tell)
        self._waiting[number] = waiting
        until = loop.time() + timeout_s
        try:
            await self._bus.nc.publish(subject, body, reply=f"{self._inbox}.{number}", headers=headers)
            while not waiting.answer.done() and (left := waiting.left_s(until, silent_max_s)) > 0:
                await asyncio.wait({waiting.answer}, timeout=left)
        except nats_errors.Error as error:
            raise AnswerLost(f"the bus is away: {error}") from None
        finally:
            del self._waiting[number]
        if not waiting.answer.done():
            if loop.time() >= until:
                raise TimedOut(after_s=timeout_s)
            raise AnswerLost(f"the service has not been heard of for {silent_max_s:g} s")
        answer = waiting.answer.result()
        if has_no_responders(answer):
            raise NotBegun("no instance of the service is connected")
        return answer

    def send_soon(self, message: Message) -> None:
        """Publish a message beside what goes on; one that the bus does not take is lost."""
        sending = asyncio.ensure_future(self._send(message))
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)

    async def _send(self, message: Message) -> None:
        with suppress(nats_errors.Error):
            await self._bus.send(message)

    async def _open(self) -> None:
        async with self._opening:
            if not self._inbox:
                inbox = self._bus.nc.new_inbox()
                await callback_subscription.subscribe(self._bus.nc, f"{inbox}.*", self._on_answer)
                self._inbox = inbox

    def _on_answer(self, message: Msg) -> None:
        waiting = self._waiting.get(message.subject.rpartition(".")[2])
        if waiting is None or waiting.answer.done():
            return
        waiting.heard_at = asyncio.get_running_loop().time()
        if h.HEARTBEAT not in (message.headers or {}):
            waiting.answer.set_result(message)
        elif message.data and waiting.tell is not None:
            with suppress(ValidationError):
                waiting.tell(ToolProgress.model_validate_json(message.data))
