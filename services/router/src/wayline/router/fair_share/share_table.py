"""How far the tenants of a lane have come in their turns, in Postgres: what all routers go by."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from wayline.router.fair_share.fair_order import FairOrder
from wayline.store import Connection, Store

KEPT_S = 10.0
"""How long a lane's turns count after the last one: what came before an interruption is forgotten."""
HELD_IDLE_MAX_S = 20.0
"""How long a router may hold a lane without a word to Postgres, which then ends its connection: it is frozen."""


@dataclass(frozen=True, slots=True)
class LaneTurns:
    """The turns of one lane until now."""

    order: FairOrder = field(default_factory=FairOrder)
    taken: int | None = None
    """How many tickets of its backlog executors had been given; None: nobody looked before."""
    taken_in_front: int | None = None
    fed: int = 0
    """Tickets in the backlog that were given their turn there, and are not begun yet."""


class HeldLane:
    """A lane in which this process alone gives turns, for as long as its transaction lasts."""

    def __init__(self, store: Store, conn: Connection, lane: str, by: str, turns: LaneTurns) -> None:
        self._store = store
        self._by = by
        self._conn = conn
        self._lane = lane
        self.turns = turns

    async def weights(self, tenants: Iterable[str]) -> dict[str, int]:
        """Return what the tickets of these tenants weigh right now."""
        rows = await self._conn.fetch(self._store.sql.tenant_weights, list(tenants))
        return {row["tenant"]: row["weight"] for row in rows}

    async def save(self, turns: LaneTurns) -> None:
        """Keep how far the tenants have come now."""
        order = turns.order
        kept = {"clock": order.clock, "due": {**order.due}, "weights": {**order.weights}}
        value = {**kept, "by": self._by, "taken": turns.taken, "taken_in_front": turns.taken_in_front, "fed": turns.fed}
        await self._conn.execute(self._store.sql.save_lane_turns, self._lane, value)


class ShareTable:
    """One row a lane."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @asynccontextmanager
    async def held(self, lane: str, *, by: str, left_s: float) -> AsyncIterator[HeldLane | None]:
        """Hold a lane; None: another router holds it, or has given turns in it in the last `left_s` seconds."""
        async with self._store.system() as conn:
            await conn.execute(self._store.sql.add_lane_turns, lane)
            idle_max = f"{HELD_IDLE_MAX_S:g}s"
            row = await conn.fetchrow(self._store.sql.lock_lane_turns, lane, KEPT_S, left_s, by, idle_max)
            if row is None:
                yield None
            else:
                yield HeldLane(self._store, conn, lane, by, _read(row["turns"]) if row["fresh"] else LaneTurns())


def _read(kept: dict[str, Any]) -> LaneTurns:
    if "clock" not in kept:
        return LaneTurns()
    order = FairOrder(kept["clock"], kept["due"], kept["weights"])
    return LaneTurns(order, kept["taken"], kept["taken_in_front"], kept["fed"])
