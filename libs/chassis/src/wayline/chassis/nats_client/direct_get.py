"""Bulk reads of a stream: one request, many messages, from whichever replica answers."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson
from nats import errors as nats_errors
from nats.aio.client import Client
from nats.aio.msg import Msg


@dataclass(frozen=True, slots=True)
class Batch:
    """The messages of one bulk read, and how many are left."""

    messages: list[Msg]
    pending: int


async def read_batch(nc: Client, subject: str, request: dict[str, Any], *, timeout_s: float) -> Batch | None:
    """Read once; None: the server's answer was not complete. Raises nats-py's errors and TimeoutError."""
    inbox = nc.new_inbox()
    subscription = await nc.subscribe(inbox)
    messages: list[Msg] = []
    try:
        await nc.publish(subject, orjson.dumps(request), reply=inbox)
        while True:
            message = await subscription.next_msg(timeout=timeout_s)
            headers = message.headers or {}
            # Not by its status alone: a stored message may have a header of that name.
            if "Nats-Sequence" in headers:
                messages.append(message)
            elif headers.get("Status") in ("204", "404"):
                return Batch(messages, int(headers.get("Nats-Num-Pending", 0)))
            else:
                return None
    finally:
        with suppress(nats_errors.Error):
            await subscription.unsubscribe()
