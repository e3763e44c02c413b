"""Stop on Ctrl-C and SIGTERM: in order after the first signal, at once after the second."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from wayline.standalone.services import ServiceGroup

T = TypeVar("T")


def end_signals() -> list[signal.Signals]:
    """Return the signals that end the process; SIGHUP, a closed terminal, only where `nohup` does not ignore it."""
    always = [signal.SIGTERM, signal.SIGINT]
    return always if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else [*always, signal.SIGHUP]


class Stopped(Exception):
    """A signal came before everything had started."""


class Stopping:
    """Whether a signal has asked for an end, and whether a second one has asked for a quick one."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.hurry = asyncio.Event()

    def listen(self) -> None:
        """Handle the signals from now on; a closed terminal counts as SIGTERM."""
        loop = asyncio.get_running_loop()
        for name in end_signals():
            loop.add_signal_handler(name, self._on_signal)

    def _on_signal(self) -> None:
        (self.hurry if self.asked.is_set() else self.asked).set()

    async def or_stop(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work unless a signal comes first. Raises Stopped."""
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

    async def drain(self, group: ServiceGroup) -> None:
        """Stop the services: they finish their work in hand unless a second signal comes."""
        draining, hurry = asyncio.create_task(group.stop()), asyncio.create_task(self.hurry.wait())
        try:
            await asyncio.wait({draining, hurry}, return_when=asyncio.FIRST_COMPLETED)
            if draining.done():
                return draining.result()
            draining.cancel()
            await asyncio.gather(draining, return_exceptions=True)
            await group.stop(0)
        finally:
            hurry.cancel()
