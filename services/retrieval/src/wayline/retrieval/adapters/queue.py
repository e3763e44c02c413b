"""The stream of index messages: where it is, so that what was sent before a delete can be told from what came after."""

from __future__ import annotations

from dataclasses import dataclass

from nats import errors as nats_errors
from nats.js import errors as js_errors

from wayline.chassis import Bus
from wayline.chassis.topology import INDEX_RETRIEVAL
from wayline.contracts.errors import Unavailable


@dataclass(frozen=True, slots=True)
class Queue:
    """How many index messages wait, and the first and last sequence of their stream."""

    waiting: int
    first: int
    last: int


async def read_queue(bus: Bus) -> Queue:
    """Read the queue as it is now. Raises Unavailable."""
    try:
        state = (await bus.js.stream_info(INDEX_RETRIEVAL.stream)).state
    except (nats_errors.Error, js_errors.Error, TimeoutError) as error:
        raise Unavailable("the bus", detail=type(error).__name__) from error
    return Queue(waiting=state.messages, first=state.first_seq, last=state.last_seq)
