"""One fetch for all callers that ask for the same thing at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
A = TypeVar("A")


class SingleFlight(Generic[K, A]):
    """Shares one answer, or one error, between all callers that ask for a key while it is being fetched.

    A cached value expires for all callers at once: without this, a burst of jobs would read it once for each job.
    """

    def __init__(self) -> None:
        self._flights: dict[K, asyncio.Task[A]] = {}

    def is_under_way(self, key: K) -> bool:
        """Return whether `fetch` would share a fetch that began earlier: its answer may be that much older."""
        return key in self._flights

    async def fetch(self, key: K, doing: Callable[[], Coroutine[Any, Any, A]]) -> A:
        """Return the result of `doing`, or of the fetch of the same key that is under way."""
        return await asyncio.shield(self.begin(key, doing))

    def begin(self, key: K, doing: Callable[[], Coroutine[Any, Any, A]]) -> asyncio.Task[A]:
        """Begin `doing` where no fetch of the same key is under way, and return its task."""
        task = self._flights.get(key)
        if task is None:
            # A task of its own: the first caller may be cancelled, and the others still need the answer.
            task = self._flights[key] = asyncio.create_task(doing())
            task.add_done_callback(lambda done: self._landed(key, done))
        return task

    def _landed(self, key: K, task: asyncio.Task[A]) -> None:
        del self._flights[key]
        if not task.cancelled():
            # Read, so that asyncio does not report an error that no caller waits for any more.
            task.exception()
