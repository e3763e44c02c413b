"""The stream of index messages: where it is, so that what was sent before a delete can be told from what came after."""

from __future__ import annotations

from dataclasses import dataclass

import orjson
from nats import errors as nats_errors
from nats.js import errors as js_errors

from wayline.chassis import Bus
from wayline.chassis.topology import INDEX_RETRIEVAL
from wayline.contracts.errors import Unavailable
from wayline.contracts.knowledge import IndexDocument

PENDING_READ_MAX = 64
"""Messages of a tenant that are looked through for a deleted document; behind them, every one may be of it."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A tenant's index messages that wait, and the last sequence of their stream."""

    last: int
    waiting: dict[int, str | None]
    """The first ones: which document each is of; None: that cannot be read."""
    more: bool = False
    """There are others behind them."""

    def holds(self, document_id: str, *, until: int) -> bool:
        """Return whether a message up to a sequence may be of a document."""
        if any(at <= until and waiting in (document_id, None) for at, waiting in self.waiting.items()):
            return True
        return self.more and max(self.waiting) < until


async def read_last(bus: Bus) -> int:
    """Return the last sequence of the stream. Raises Unavailable."""
    try:
        return (await bus.js.stream_info(INDEX_RETRIEVAL.stream)).state.last_seq
    except (nats_errors.Error, js_errors.Error, TimeoutError) as error:
        raise Unavailable("the bus", detail=type(error).__name__) from error


async def read_queue(bus: Bus, tenant: str) -> Queue:
    """Read a tenant's queue as it is now. Raises Unavailable."""
    # First: what comes after this was sent after the deletion that asks.
    last = await read_last(bus)
    subject, start = IndexDocument.subject_template.format(tenant=tenant), 1
    waiting: dict[int, str | None] = {}
    try:
        while len(waiting) < PENDING_READ_MAX and start <= last:
            found = await bus.js.get_msg(INDEX_RETRIEVAL.stream, seq=start, subject=subject, next=True)
            assert found.seq is not None
            waiting[found.seq] = _document_of(found.data or b"")
            start = found.seq + 1
    except js_errors.NotFoundError:
        return Queue(last, waiting)
    except (nats_errors.Error, js_errors.Error, TimeoutError) as error:
        raise Unavailable("the bus", detail=type(error).__name__) from error
    return Queue(last, waiting, more=start <= last)


def _document_of(body: bytes) -> str | None:
    try:
        document_id = orjson.loads(body)["document_id"]
    except (ValueError, KeyError, TypeError):
        return None
    return document_id if isinstance(document_id, str) else None
