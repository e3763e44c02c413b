"""A job's place in its queue among its news, for as long as it waits there."""

from __future__ import annotations

from contextlib import aclosing
from typing import Protocol

from wayline.contracts.events import TERMINAL_TYPES, Event
from wayline.contracts.jobs import QueuePlace
from wayline.journal import ProgressNews

_LEAVES_QUEUE = frozenset({"job.claimed", "job.parked", *TERMINAL_TYPES})
"""From the first of these events on, a job does not wait for its first executor."""


class Watch(Protocol):
    """Looks at a job's place every so often."""

    def end(self) -> None:
        """Look no more."""
        ...


async def while_queued(news: ProgressNews, watch: Watch) -> ProgressNews:
    """Yield a job's news, and end the watch with the event by which the job leaves its queue.

    `news` begins with the log's first event.
    """
    queued = True
    async with aclosing(news) as items:
        async for item in items:
            if isinstance(item, Event) and item.type in _LEAVES_QUEUE:
                queued = False
                watch.end()
            if queued or not isinstance(item, QueuePlace):
                yield item
