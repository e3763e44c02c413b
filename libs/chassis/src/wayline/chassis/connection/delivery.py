"""How a stored message came to be handled."""

from __future__ import annotations

from dataclasses import dataclass, field

from nats.aio.msg import Msg


@dataclass(frozen=True, slots=True)
class Delivery:
    """How a message came: where it is stored, how often it was delivered, its headers."""

    stream: str
    consumer: str
    sequence: int
    deliveries: int
    subject: str
    stored_ns: int = 0
    """When the stream stored it: with the sequence, the same at each redelivery and never again."""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @classmethod
    def of(cls, message: Msg) -> Delivery:
        stream, consumer, delivered, sequence, _, stored = _reply_tokens(message.reply)
        return cls(
            stream,
            consumer,
            int(sequence),
            int(delivered),
            message.subject,
            int(stored),
            message.headers or {},
            message.data,
        )


def stored_at(message: Msg) -> int:
    """Return a message's sequence in its stream, without reading the rest of its delivery."""
    return int(_reply_tokens(message.reply)[3])


def left_behind(message: Msg) -> int:
    """Return how many messages its consumer had yet to deliver when it delivered this one."""
    tokens = message.reply.split(".")
    return int(tokens[8] if len(tokens) == 9 else tokens[10])


def _reply_tokens(reply: str) -> list[str]:
    tokens = reply.split(".")
    # $JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>; with a domain and an
    # account hash there are two more in front.
    return tokens[2:8] if len(tokens) == 9 else tokens[4:10]
