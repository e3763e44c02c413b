"""Messages that the bus itself gives up: fetched from their stream, put aside with their body, deleted."""

from __future__ import annotations

from nats.js.errors import NotFoundError

from wayline.chassis import Bus, Delivery
from wayline.contracts.base import Message


class Advisory(Message, subject="$JS.EVENT.ADVISORY.CONSUMER.{kind}.{stream}.{consumer}"):
    """The server says that a message used up its deliveries, or that a consumer ended it."""

    kind: str = ""
    stream: str = ""
    consumer: str = ""
    stream_seq: int
    deliveries: int = 0
    reason: str | None = None


async def put_aside(bus: Bus, told: Advisory, _: Delivery) -> None:
    """Move the message that an advisory names to the dead letters; one that is gone was put aside before."""
    try:
        stored = await bus.js.get_msg(told.stream, told.stream_seq)
    except NotFoundError:
        return
    lost = Delivery(
        told.stream,
        told.consumer,
        told.stream_seq,
        told.deliveries,
        stored.subject or "",
        headers=dict(stored.headers or {}),
        body=stored.data or b"",
    )
    code = "terminated" if told.kind == "MSG_TERMINATED" else "undeliverable"
    reason = told.reason or f"{told.deliveries} deliveries ended without an ack"
    await bus.put_aside(lost, code=code, reason=reason)
    await bus.js.delete_msg(told.stream, told.stream_seq)
