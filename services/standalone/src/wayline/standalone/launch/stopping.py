"""Ctrl-C and SIGTERM: the first asks for an orderly end, a second one for a quick one."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from wayline.standalone.services import Fleet

T = TypeVar("T")


def ends() -> list[signal.Signals]:
    """Return the signals that ask for the end: SIGHUP, a closed terminal, not where `nohup` has it ignored."""
    heard = [signal.SIGTERM, signal.SIGINT]
    return heard if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else [*heard, signal.SIGHUP]


class Stopped(Exception):
    """The end was asked for before everything had started."""


class Stopping:
    """What was asked for so far."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.hurry = asyncio.Event()

    def listen(self) -> None:
        """Take the signals; a closed terminal counts as SIGTERM."""
        loop = asyncio.get_running_loop()
        for name in ends():
            loop.add_signal_handler(name, self._heard)

    def _heard(self) -> None:
        (self.hurry if self.asked.is_set() else self.asked).set()

    async def or_stop(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work, unless the end is asked for first. Raises Stopped."""
        doing, asked = asyncio.create_task(work), asyncio.create_task(self.asked.wait())
        try:
            await asyncio.wait({doing, asked}, return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                raise Stopped
            return doing.result()
        finally:
            asked.cancel()
            doing.cancel()
            await asyncio.gather(doing, asked, return_exceptions=True)

    async def drain(self, fleet: Fleet) -> None:
        """Stop the services: what is in hand may be finished, until a second signal."""
        draining, hurry = asyncio.create_task(fleet.stop()), asyncio.create_task(self.hurry.wait())
        try:
            await asyncio.wait({draining, hurry}, return_when=asyncio.FIRST_COMPLETED)
            if draining.done():
                return draining.result()
            draining.cancel()
            await asyncio.gather(draining, return_exceptions=True)
            await fleet.stop(0)
        finally:
            hurry.cancel()
