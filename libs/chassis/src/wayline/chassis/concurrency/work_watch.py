"""Ask once for several looks whether any of them would find work, instead of each looking by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass

from wayline.chassis.concurrency.periodic import Periodic

LOOK_ANYWAY_S = 10.0
"""How often a look is made that nobody was told of: what tells of its work may be away, or miss some."""


@dataclass(frozen=True, slots=True)
class Look:
    """A periodic look that begins at once when it is told of work."""

    now: Callable[[], None]
    every_s: float
    """How often it is told at most."""


class WorkWatch:
    """Asks every so often which looks have work, and has these look.

    While there is none, which is most of the time, one question costs what each of them would. A look that is told has
    to find out by itself what there is: another process may have been faster.
    """

    def __init__(self, due: Callable[[], Awaitable[Collection[str]]], looks: Mapping[str, Look]) -> None:
        self._due = due
        self._looks = looks
        self._every_s = min(look.every_s for look in looks.values())
        self._told_at: dict[str, float] = {}
        self._periodic = Periodic("work", self.look, every_s=self._every_s)
        self.stop = self._periodic.stop

    async def start(self) -> None:
        """Begin to ask; the looks have begun with a turn of their own."""
        self._told_at = dict.fromkeys(self._looks, asyncio.get_running_loop().time())
        await self._periodic.start()

    async def look(self) -> None:
        """Tell the looks that have work, unless they were told just now."""
        due = await self._due()
        # A timer may be a little early: half a turn is not what a look waits for.
        told_before = asyncio.get_running_loop().time() + self._every_s / 2
        for name in due:
            if told_before - self._told_at.get(name, float("-inf")) >= self._looks[name].every_s:
                self._told_at[name] = asyncio.get_running_loop().time()
                self._looks[name].now()
