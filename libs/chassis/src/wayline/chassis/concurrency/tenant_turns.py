"""A few slots that tenants share in turns: none holds more than its share of them."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class TenantTurns:
    """A few slots; a tenant that gives one back waits for its next behind all other tenants that wait.

    A tenant never holds more than its share, even when a slot is free: the next tenant would have to wait for it.
    """

    def __init__(self, slots_max: int, *, per_tenant_max: int = 1) -> None:
        self._free = slots_max
        self._per_tenant_max = per_tenant_max
        self._holding: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """The tenant whose turn is next comes first."""

    @asynccontextmanager
    async def turn(self, tenant: str) -> AsyncIterator[None]:
        """Wait for a slot, and hold it."""
        await self._take(tenant)
        try:
            yield
        finally:
            self._give_back(tenant)

    async def _take(self, tenant: str) -> None:
        if self._free and self._has_room(tenant):
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

    def _has_room(self, tenant: str) -> bool:
        return self._holding.get(tenant, 0) < self._per_tenant_max

    def _hold(self, tenant: str) -> None:
        self._free -= 1
        self._holding[tenant] += 1

    def _give_back(self, tenant: str) -> None:
        self._free += 1
        self._holding[tenant] -= 1
        if not self._holding[tenant]:
            del self._holding[tenant]
        if tenant in self._waiting:
            self._waiting.move_to_end(tenant)
        # A slot has become free, and one tenant may hold one more again: that is at most one turn.
        if (following := self._next_turn()) is not None:
            tenant, turn = following
            self._leave(tenant, turn)
            self._hold(tenant)
            turn.set_result(None)

    def _next_turn(self) -> tuple[str, asyncio.Future[None]] | None:
        for tenant, turns in self._waiting.items():
            # One that was cancelled leaves by itself, once its task runs.
            alive = next((turn for turn in turns if not turn.cancelled()), None)
            if alive is not None and self._has_room(tenant):
                return tenant, alive
        return None

    def _leave(self, tenant: str, turn: asyncio.Future[None]) -> None:
        turns = self._waiting[tenant]
        turns.remove(turn)
        if not turns:
            del self._waiting[tenant]
