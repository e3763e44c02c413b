"""How the slots of one kind of request are shared between tenants: none takes all of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

SHARED_FROM = 4
"""Slots from which on they are shared out; with fewer, a share would be half of them or all."""
SHARE = 0.75
"""Of the slots, and of the bytes that wait for one, that one tenant may have."""


@dataclass
class _Tenant:
    turns: asyncio.Semaphore
    users: int = 0
    held_bytes: int = 0


class RequestTurns:
    """Lets so many requests be handled at a time, and of one tenant no more than its share."""

    def __init__(self, slots: int, *, held_max_bytes: int) -> None:
        self._turns = asyncio.Semaphore(slots)
        self._per_tenant = slots if slots < SHARED_FROM else int(slots * SHARE)
        self._held_max_bytes = held_max_bytes
        self._held_bytes = 0
        self._tenants: dict[str, _Tenant] = {}

    def has_room(self, tenant: str, size: int) -> bool:
        """Return whether a request of this size may wait for its turn."""
        held = self._tenants[tenant].held_bytes if tenant in self._tenants else 0
        # The first one of a tenant always may, so that a small limit never shuts one out.
        fits_share = not held or held + size <= self._held_max_bytes * SHARE
        return fits_share and self._held_bytes + size <= self._held_max_bytes

    @asynccontextmanager
    async def turn(self, tenant: str, size: int) -> AsyncIterator[None]:
        """Wait for a turn, its tenant's first: what waits for that takes no slot."""
        one = self._tenants.setdefault(tenant, _Tenant(asyncio.Semaphore(self._per_tenant)))
        one.users += 1
        one.held_bytes += size
        self._held_bytes += size
        try:
            async with one.turns, self._turns:
                yield
        finally:
            self._held_bytes -= size
            one.held_bytes -= size
            one.users -= 1
            if not one.users:
                del self._tenants[tenant]
