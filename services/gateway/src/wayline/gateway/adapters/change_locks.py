"""One change of a piece of configuration at a time, over all gateways: what a client has read is what it changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from wayline.store import Store

AT_ONCE: Final = 4
"""Changes under way in one process: each holds a connection to Postgres while the service that keeps it answers."""
AT_ONCE_PER_TENANT: Final = 2


class ChangeLocks:
    """Locks in Postgres that end with their transaction, and with a process that dies."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._all = asyncio.Semaphore(AT_ONCE)
        self._tenants: dict[str, tuple[asyncio.Semaphore, int]] = {}

    @asynccontextmanager
    async def held(self, tenant: str, kind: str, name: str) -> AsyncIterator[None]:
        """Hold the lock of one piece of configuration. Raises PostgresUnavailable after a while."""
        async with self._place(tenant), self._all, self._store.tenant(tenant) as conn:
            await conn.execute(self._store.sql.wait_for_change)
            await conn.execute(self._store.sql.lock_change, f"{tenant}/{kind}/{name}")
            yield

    @asynccontextmanager
    async def _place(self, tenant: str) -> AsyncIterator[None]:
        places, users = self._tenants.get(tenant, (asyncio.Semaphore(AT_ONCE_PER_TENANT), 0))
        self._tenants[tenant] = places, users + 1
        try:
            async with places:
                yield
        finally:
            places, users = self._tenants[tenant]
            if users == 1:
                del self._tenants[tenant]
            else:
                self._tenants[tenant] = places, users - 1
