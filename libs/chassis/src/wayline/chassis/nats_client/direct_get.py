"""Bulk reads of a stream: one request, many messages, from whichever replica answers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import orjson
from nats import errors as nats_errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from wayline.chassis.nats_client import callback_subscription


@dataclass(frozen=True, slots=True)
class Batch:
    """The messages of one bulk read, and how many are left."""

    messages: list[Msg]
    pending: int


async def read_batch(nc: Client, subject: str, request: dict[str, Any], *, timeout_s: float) -> Batch | None:
    """Read once; None: the server's answer was not complete. Raises nats-py's errors, and TimeoutError in silence."""
    inbox, answer = nc.new_inbox(), _Answer()
    # Not by `next_msg`, which makes a task and a timer for each message.
    subscription = await callback_subscription.subscribe(nc, inbox, answer.take)
    try:
        await nc.publish(subject, orjson.dumps(request), reply=inbox)
        await answer.ended(timeout_s)
    finally:
        await callback_subscription.end(subscription)
    headers = answer.end.result().headers or {}
    if headers.get("Status") not in ("204", "404"):
        return None
    return Batch(answer.messages, int(headers.get("Nats-Num-Pending", 0)))


class _Answer:
    """The messages of an answer, as they come."""

    def __init__(self) -> None:
        self.messages: list[Msg] = []
        self.end: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()
        """What the server says behind the last of them."""

    def take(self, message: Msg) -> None:
        """Hear one message; none counts behind the end."""
        if self.end.done():
            return
        # Not by its status alone: a stored message may have a header of that name.
        if "Nats-Sequence" in (message.headers or {}):
            self.messages.append(message)
        else:
            self.end.set_result(message)

    async def ended(self, timeout_s: float) -> None:
        """Wait for the end. Raises TimeoutError where nothing has come for so long."""
        heard = -1
        while len(self.messages) > heard:
            heard = len(self.messages)
            await asyncio.wait((self.end,), timeout=timeout_s)
            if self.end.done():
                return
        raise nats_errors.TimeoutError
