"""Turns at what takes much memory: a few at once in a process, fewer of one tenant."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from wayline.contracts.errors import Full


class BoundedTurns:
    """Lets so many do one thing at once, and so many of a tenant wait for it."""

    def __init__(self, what: str, *, at_once: int, at_once_per_tenant: int, waiting_per_tenant: int) -> None:
        self._what = what
        self._per_tenant = at_once_per_tenant
        self._most = at_once_per_tenant + waiting_per_tenant
        self._all = asyncio.Semaphore(at_once)
        self._of_tenant: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._here: Counter[str] = Counter()

    @asynccontextmanager
    async def turn(self, tenant: str) -> AsyncIterator[None]:
        """Wait for a turn, and hold it. Raises Full where as many of the tenant wait as may."""
        if self._here[tenant] >= self._most:
            raise Full(self._what)
        self._here[tenant] += 1
        own = self._of_tenant.setdefault(tenant, asyncio.Semaphore(self._per_tenant))
        try:
            async with own, self._all:
                yield
        finally:
            self._here[tenant] -= 1
            if not self._here[tenant]:
                del self._here[tenant]
