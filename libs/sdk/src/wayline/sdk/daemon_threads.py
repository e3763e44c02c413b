"""Runs functions that block on threads of their own, which never keep the process from ending."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from wayline.sdk.errors import TryLater

Ended = tuple[Any, BaseException | None]
"""What a function returned, or raised."""


class DaemonThreads:
    """Runs each function on a new thread; a thread cannot be cut, so one whose caller is gone is counted."""

    def __init__(self) -> None:
        self.abandoned = 0
        """Threads whose function goes on, and nothing waits for it."""

    async def run(self, function: Callable[[], Any]) -> Any:
        """Return what a function returns. Raises TryLater where no thread can be started for it."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Ended] = loop.create_future()
        context = contextvars.copy_context()

        def work() -> None:
            outcome = _outcome(lambda: context.run(function))
            # The loop is closed where the process ends meanwhile.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._end, ended, outcome)

        try:
            threading.Thread(target=work, name="wayline tool", daemon=True).start()
        except RuntimeError as error:
            raise TryLater(f"no thread for it: {error}") from None
        try:
            value, error = await ended
        except asyncio.CancelledError:
            if ended.cancelled():
                self.abandoned += 1
            raise
        if error is not None:
            raise error
        return value

    def _end(self, ended: asyncio.Future[Ended], outcome: Ended) -> None:
        if ended.cancelled():
            self.abandoned -= 1
        else:
            ended.set_result(outcome)


def _outcome(function: Callable[[], Any]) -> Ended:
    try:
        return function(), None
    except BaseException as error:
        # Raised again where the function was called.
        return None, error
