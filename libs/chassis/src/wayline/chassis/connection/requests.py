"""Requests on core NATS and their answers, matched by a number in the reply subject."""

from __future__ import annotations

import asyncio
import itertools
from math import inf

from nats import errors as nats_errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from wayline.chassis.nats_client import callback_subscription
from wayline.contracts.base import Request
from wayline.contracts.errors import Unavailable

NO_RESPONDERS = "503"
QUIET_S = 0.5
"""A question to all replicas ends when no further answer has come for this long, where nobody says otherwise."""
EVERYONE_MAX = 1_000
"""The most answers that one question to all replicas waits for."""


class Answers:
    """One subscription for all answers, as in nats-py, at half its cost: most of a job's step is one request.

    nats-py draws a random name for each request and waits with `asyncio.wait_for`, which in Python 3.11 can also lose
    a cancellation; a number and a timer do neither. One timer serves all waiting requests: nearly every answer
    comes, and a later request seldom times out before an earlier one.
    """

    def __init__(self, nc: Client) -> None:
        self._nc = nc
        self._waiting: dict[str, tuple[asyncio.Future[Msg], float]] = {}
        """By number, with the loop's time at which each request times out."""
        self._timer: asyncio.TimerHandle | None = None
        self._looks_at = inf
        self._numbers = itertools.count(1)
        self._inbox = ""

    async def ask(self, subject: str, body: bytes, *, timeout_s: float, headers: dict[str, str] | None) -> Msg:
        """Publish a request and wait for its first answer. Raises TimeoutError, or NoRespondersError at once.

        Raises ConnectionReconnectingError where the connection broke meanwhile and stands again.
        """
        if not self._inbox:
            await self._open()
        loop = asyncio.get_running_loop()
        number, answer, until = str(next(self._numbers)), loop.create_future(), loop.time() + timeout_s
        self._waiting[number] = answer, until
        if until < self._looks_at:
            self._look_at(until)
        try:
            await self._nc.publish(subject, body, reply=f"{self._inbox}.{number}", headers=headers)
            return await answer
        finally:
            del self._waiting[number]

    def forget(self) -> None:
        """Fail every waiting request, to be asked again: a restarted server has forgotten who may answer."""
        for answer, _ in self._waiting.values():
            if not answer.done():
                answer.set_exception(nats_errors.ConnectionReconnectingError())

    async def _open(self) -> None:
        # Set before the await: a request made meanwhile is published after this subscription, on the same connection.
        self._inbox = self._nc.new_inbox()
        try:
            await callback_subscription.subscribe(self._nc, f"{self._inbox}.*", self._on_answer)
        except BaseException:
            self._inbox = ""
            raise

    def _on_answer(self, message: Msg) -> None:
        waiting, _ = self._waiting.get(message.subject.rpartition(".")[2], (None, 0))
        if waiting is None or waiting.done():
            return
        if has_no_responders(message):
            waiting.set_exception(nats_errors.NoRespondersError())
        else:
            waiting.set_result(message)

    def _look_at(self, until: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._looks_at = until
        self._timer = asyncio.get_running_loop().call_at(until, self._look)

    def _look(self) -> None:
        """Fail the requests whose time is over, and set the timer for the next one."""
        over, self._looks_at, self._timer = self._looks_at, inf, None
        for answer, until in self._waiting.values():
            if until <= over and not answer.done():
                answer.set_exception(TimeoutError())
        later = [until for _, until in self._waiting.values() if until > over]
        if later:
            self._look_at(min(later))


async def ask_everyone(
    nc: Client, subject: str, body: bytes, *, timeout_s: float, quiet_s: float | None, headers: dict[str, str] | None
) -> list[Msg]:
    """Publish a request and gather the answers until it has become quiet.

    Raises TimeoutError when there is none in time, or NoRespondersError at once.
    """
    inbox = nc.new_inbox()
    subscription = await nc.subscribe(inbox, max_msgs=EVERYONE_MAX)
    found: list[Msg] = []
    quiet_s = QUIET_S if quiet_s is None else quiet_s
    try:
        await nc.publish(subject, body, reply=inbox, headers=headers)
        while len(found) < EVERYONE_MAX:
            try:
                found.append(await subscription.next_msg(timeout=quiet_s if found else timeout_s))
            except nats_errors.TimeoutError:
                break
            if has_no_responders(found[0]):
                raise nats_errors.NoRespondersError
    finally:
        await subscription.unsubscribe()
    if not found:
        raise TimeoutError
    return found


def has_no_responders(answer: Msg) -> bool:
    """Return whether an answer is the server's word that nobody listens."""
    return not answer.data and answer.headers is not None and answer.headers.get("Status") == NO_RESPONDERS


def unanswered(request: Request, error: BaseException) -> Unavailable:
    """Return what an asker is told where nobody answered."""
    return Unavailable(request.subject_template.split(".{", 1)[0], detail=type(error).__name__)
