"""One fetch for everybody who asks for the same thing at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
A = TypeVar("A")


class SingleFlight(Generic[K, A]):
    """Shares one answer, or one error, between all who ask for a key while it is being fetched.

    What is remembered for a few seconds is forgotten for everybody at once: without this, a burst of jobs would have
    the same thing read again as often as there are jobs.
    """

    def __init__(self) -> None:
        self._flights: dict[K, asyncio.Task[A]] = {}

    def is_under_way(self, key: K) -> bool:
        """Return whether `fetch` would share what somebody asked for before: what it tells may be that much older."""
        return key in self._flights

    async def fetch(self, key: K, doing: Callable[[], Coroutine[Any, Any, A]]) -> A:
        """Return what `doing` returns, or what it returns to somebody who asked for the key before."""
        task = self._flights.get(key)
        if task is None:
            # A task of its own: whoever asked first may be cancelled, and the others' answer must come all the same.
            task = self._flights[key] = asyncio.create_task(doing())
            task.add_done_callback(lambda done: self._landed(key, done))
        return await asyncio.shield(task)

    def _landed(self, key: K, task: asyncio.Task[A]) -> None:
        del self._flights[key]
        if not task.cancelled():
            # Read, so that an error which nobody waits for any more is no complaint at the end.
            task.exception()
