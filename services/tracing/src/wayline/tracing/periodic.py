"""Does something every so often, until it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import asyncpg
import structlog
from nats import errors as nats_errors

from wayline.contracts.errors import WaylineError
from wayline.store import PostgresUnavailable

log = structlog.get_logger()

AWAY = (PostgresUnavailable, asyncpg.PostgresError, nats_errors.Error, WaylineError, TimeoutError, OSError)
SHARE_MAX = 0.05
"""The share of its time that a task may take: when it takes longer, its pauses grow."""


class Periodic:
    """A task that is done again and again; what fails is tried again at the next turn."""

    def __init__(self, name: str, do: Callable[[], Awaitable[None]], *, every_s: float) -> None:
        self._name = name
        self._do = do
        self._every_s = every_s
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=self._name)

    async def stop(self, grace_s: float) -> None:
        """End after the present turn, or in the middle of it when the grace is over."""
        self._stopping.set()
        if self._task is not None:
            _, late = await asyncio.wait({self._task}, timeout=grace_s)
            for task in late:
                task.cancel()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        # The flag and not a cancellation ends this: a cancelled request of the bus's client may come back as a timeout.
        while not self._stopping.is_set():
            began = loop.time()
            try:
                await self._do()
            except AWAY as error:
                log.warning("put off", what=self._name, why=str(error) or type(error).__name__)
            except Exception as error:  # whatever it is, the next turn may be well: nobody else takes it
                log.error("failed", what=self._name, error=repr(error), exc_info=error)
            pause_s = max(self._every_s, (loop.time() - began) / SHARE_MAX)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause_s)
