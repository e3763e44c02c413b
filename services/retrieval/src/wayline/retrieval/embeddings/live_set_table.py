"""Read which set of vectors a tenant's searches read, and make the first one."""

from __future__ import annotations

from wayline.retrieval.embeddings.live_sets import LiveSet
from wayline.store import Store


class LiveSetTable:
    """The live set of each tenant."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sql = store.sql

    async def live(self, tenant: str) -> LiveSet | None:
        """Return the set that searches read; None: nothing has been ingested yet."""
        row = await self._store.fetchrow(tenant, self._sql.live_set, tenant)
        return LiveSet(**dict(row)) if row else None

    async def made(self, tenant: str, *, model: str, asked_dimensions: int | None) -> LiveSet:
        """Return the set that searches read; where there is none make it, of the model the tenant chose or of this."""
        live = await self.live(tenant)
        while live is None:
            await self._store.execute(tenant, self._sql.make_live_set, tenant, model, asked_dimensions)
            live = await self.live(tenant)
        return live
