"""Do something again and again, every so often, until it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog
from nats import errors as nats_errors

from wayline.chassis.concurrency.awaited_tasks import ended_within, stopped
from wayline.contracts.errors import Retry

log = structlog.get_logger()

PASSING = (Retry, nats_errors.Error, TimeoutError, OSError)
"""Errors that pass by themselves; everything else is a bug, and logged as an error."""


class Periodic:
    """Does one thing every `every_s` seconds; a turn that fails is logged, and the next one tries again.

    The first turn begins at the start. A turn is followed by a pause of `every_s`, and of at least `rest_factor` times
    as long as it took, so that a slow one does not fill the time. With `last_turn`, one more follows the stop.
    """

    def __init__(
        self,
        what: str,
        do: Callable[[], Awaitable[object]],
        *,
        every_s: float,
        rest_factor: float = 0.0,
        last_turn: bool = False,
    ) -> None:
        self._what = what
        self._do = do
        self._every_s = every_s
        self._rest_factor = rest_factor
        self._last_turn = last_turn
        self._wanted = asyncio.Event()
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin the first turn."""
        self._task = asyncio.create_task(self._run(), name=self._what)

    def now(self) -> None:
        """Begin the next turn at once, or straight after the one under way."""
        self._wanted.set()

    async def stop(self, grace_s: float) -> None:
        """End after the present turn, or in the middle of it when the grace is over."""
        self._stopping = True
        self._wanted.set()
        if self._task is not None and not await ended_within(self._task, grace_s):
            await stopped(self._task)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        # The flag and not a cancellation ends this: a cancelled request of the bus's client may come back as a timeout.
        while not self._stopping:
            self._wanted.clear()
            began = loop.time()
            await self._turn()
            with suppress(TimeoutError):
                pause_s = max(self._every_s, (loop.time() - began) * self._rest_factor)
                await asyncio.wait_for(self._wanted.wait(), pause_s)
        if self._last_turn:
            await self._turn()

    async def _turn(self) -> None:
        try:
            await self._do()
        except PASSING as error:
            log.warning("put off", what=self._what, why=str(error) or type(error).__name__)
        except Exception as error:  # one failed turn must not end the others
            log.error("failed", what=self._what, error=repr(error), exc_info=error)
