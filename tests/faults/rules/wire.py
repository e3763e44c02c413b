"""What was said on the bus, in the order in which the server got it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
from nats.aio.msg import Msg

from wayline.journal import read_record

from ..platform import TENANT

HEARD = tuple("$JS.ACK.> $JS.API.> events.> jobs.> signals.> later.> budgets.> tools.> marker.>".split())


@dataclass
class Wire:
    """Everything that was published, in order."""

    heard: list[Msg] = field(default_factory=list)

    def find(self, what: Callable[[Msg], bool], after: int = -1) -> int | None:
        """Where the first such message is, after a place."""
        return next((n for n in range(after + 1, len(self.heard)) if what(self.heard[n])), None)

    def order(self, *whats: Callable[[Msg], bool]) -> list[int | None]:
        """Where the first of each is."""
        return [self.find(what) for what in whats]

    def acks(self, stream: str) -> list[tuple[int, int, bytes]]:
        """What was said of the messages of a stream: stream sequence, delivery, and `+ACK`, `-NAK`, `+WPI`."""
        told = [message for message in self.heard if message.subject.startswith(f"$JS.ACK.{stream}.")]
        tokens = [message.subject.split(".") for message in told]
        return [(int(t[5]), int(t[4]), m.data.split(b" ")[0] or b"+ACK") for t, m in zip(tokens, told, strict=True)]


def record(job_id: str, kind: str) -> Callable[[Msg], bool]:
    """A record of a job that holds an event of this type."""
    return lambda m: m.subject == f"events.{TENANT}.{job_id}" and kind in [event.type for event in read_record(m.data)]


def on(prefix: str, **body: Any) -> Callable[[Msg], bool]:
    """A message on a subject, with these fields in its body."""
    return lambda m: m.subject.startswith(prefix) and (not body or body.items() <= orjson.loads(m.data).items())


def ack(stream: str) -> Callable[[Msg], bool]:
    # An empty body is an ack too, and the one our client sends.
    return lambda m: m.subject.startswith(f"$JS.ACK.{stream}.") and m.data in (b"", b"+ACK")
