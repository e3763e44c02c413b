"""Slots that tenants share in turns: one tenant holds one at a time."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class TenantSlots:
    """A few slots; a tenant that gives one back waits for its next behind all other tenants that wait.

    A tenant never holds two, even when one is free: the next tenant would have to wait for it.
    """

    def __init__(self, slots_max: int) -> None:
        self._free = slots_max
        self._holding: set[str] = set()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """The tenant whose turn is next comes first."""

    @asynccontextmanager
    async def slot(self, tenant: str) -> AsyncIterator[None]:
        """Wait for a slot, and hold it."""
        await self._take(tenant)
        try:
            yield
        finally:
            self._give_back(tenant)

    async def _take(self, tenant: str) -> None:
        if self._free and tenant not in self._holding:
            self._hold(tenant)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(tenant, turn)
            else:
                self._give_back(tenant)
            raise

    def _hold(self, tenant: str) -> None:
        self._free -= 1
        self._holding.add(tenant)

    def _give_back(self, tenant: str) -> None:
        self._free += 1
        self._holding.remove(tenant)
        if tenant in self._waiting:
            self._waiting.move_to_end(tenant)
        # A slot has become free, and one tenant may hold one again: that is at most one turn.
        if (following := self._next_turn()) is not None:
            tenant, turn = following
            self._leave(tenant, turn)
            self._hold(tenant)
            turn.set_result(None)

    def _next_turn(self) -> tuple[str, asyncio.Future[None]] | None:
        for tenant, turns in self._waiting.items():
            # One that was cancelled leaves by itself, once its task runs.
            alive = next((turn for turn in turns if not turn.cancelled()), None)
            if alive is not None and tenant not in self._holding:
                return tenant, alive
        return None

    def _leave(self, tenant: str, turn: asyncio.Future[None]) -> None:
        turns = self._waiting[tenant]
        turns.remove(turn)
        if not turns:
            del self._waiting[tenant]
