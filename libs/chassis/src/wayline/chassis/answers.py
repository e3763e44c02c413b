"""Requests on core NATS and their answers, matched by a number in the reply subject."""

from __future__ import annotations

import asyncio
import itertools

from nats import errors as nats_errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from wayline.chassis import straight

NO_RESPONDERS = "503"


class Answers:
    """One subscription for all answers, as in nats-py, at half its cost: a step of a job is a request and little else.

    nats-py draws a random name for each request and waits with `asyncio.wait_for`, which in Python 3.11 can also lose
    a cancellation; a number and a timer do neither.
    """

    def __init__(self, nc: Client) -> None:
        self._nc = nc
        self._waiting: dict[str, asyncio.Future[Msg]] = {}
        self._numbers = itertools.count(1)
        self._inbox = ""

    async def ask(self, subject: str, body: bytes, *, timeout_s: float, headers: dict[str, str] | None) -> Msg:
        """Publish a request and wait for its first answer. Raises TimeoutError, or NoRespondersError at once."""
        if not self._inbox:
            await self._open()
        loop = asyncio.get_running_loop()
        number, answer = str(next(self._numbers)), loop.create_future()
        self._waiting[number] = answer
        timer = loop.call_later(timeout_s, _give_up, answer)
        try:
            await self._nc.publish(subject, body, reply=f"{self._inbox}.{number}", headers=headers)
            return await answer
        finally:
            timer.cancel()
            del self._waiting[number]

    async def _open(self) -> None:
        # Named before the await: whoever asks meanwhile publishes behind this subscription, on the same connection.
        self._inbox = self._nc.new_inbox()
        try:
            await straight.subscribe(self._nc, f"{self._inbox}.*", self._on_answer)
        except BaseException:
            self._inbox = ""
            raise

    def _on_answer(self, message: Msg) -> None:
        waiting = self._waiting.get(message.subject.rpartition(".")[2])
        if waiting is None or waiting.done():
            return
        if not message.data and message.headers and message.headers.get("Status") == NO_RESPONDERS:
            waiting.set_exception(nats_errors.NoRespondersError())
        else:
            waiting.set_result(message)


def _give_up(answer: asyncio.Future[Msg]) -> None:
    if not answer.done():
        answer.set_exception(TimeoutError())
