"""How the slots of one kind of request are shared between tenants: none takes all of them."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
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

    def turn(self, tenant: str, size: int) -> AbstractAsyncContextManager[None]:
        """Wait for a turn, its tenant's first: what waits for that takes no slot."""
        return _Turn(self, tenant, size)

    async def take(self, tenant: str, size: int) -> None:
        """Hold the bytes of a request, and wait for its turn."""
        one = self._tenants.get(tenant)
        if one is None:
            one = self._tenants[tenant] = _Tenant(asyncio.Semaphore(self._per_tenant))
        one.users += 1
        one.held_bytes += size
        self._held_bytes += size
        try:
            await one.turns.acquire()
            try:
                await self._turns.acquire()
            except BaseException:
                one.turns.release()
                raise
        except BaseException:
            self._let_go(tenant, one, size)
            raise

    def give(self, tenant: str, size: int) -> None:
        """End a turn that was taken."""
        one = self._tenants[tenant]
        self._turns.release()
        one.turns.release()
        self._let_go(tenant, one, size)

    def _let_go(self, tenant: str, one: _Tenant, size: int) -> None:
        self._held_bytes -= size
        one.held_bytes -= size
        one.users -= 1
        if not one.users:
            del self._tenants[tenant]


class _Turn(AbstractAsyncContextManager[None]):
    # Not a generator: the event loop keeps a list of those, and each request would be one.
    __slots__ = ("_size", "_tenant", "_turns")

    def __init__(self, turns: RequestTurns, tenant: str, size: int) -> None:
        self._turns, self._tenant, self._size = turns, tenant, size

    async def __aenter__(self) -> None:
        await self._turns.take(self._tenant, self._size)

    async def __aexit__(self, *_: object) -> None:
        self._turns.give(self._tenant, self._size)
