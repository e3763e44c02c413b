"""Add what documents changed to their tenants' counts: in how many passages each word is, and how many there are."""

from __future__ import annotations

from wayline.chassis import Periodic
from wayline.chassis.concurrency.work_watch import LOOK_ANYWAY_S
from wayline.store import Store

WORDS_MAX = 100_000
"""Words added in one transaction, which takes a second or two; searches count what is still waiting."""
EVERY_S = 1.0


class WordCounts:
    """Adds the changes of all tenants to the counts, soon after there are any."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sql = store.sql
        periodic = Periodic("counts of words", self.add_all, every_s=LOOK_ANYWAY_S)
        self.start, self.stop, self.add_now = periodic.start, periodic.stop, periodic.now

    async def add_all(self) -> None:
        """Add every change that waits, unless another service is at it."""
        async with self._store.system() as conn:
            tenants = [row["tenant"] for row in await conn.fetch(self._sql.tenants_with_changes)]
        for tenant in tenants:
            while await self._add_some(tenant):
                pass

    async def _add_some(self, tenant: str) -> bool:
        async with self._store.tenant(tenant) as conn:
            if not await conn.fetchval(self._sql.lock_counts, tenant):
                return False
            added = await conn.fetchrow(self._sql.add_changes, tenant, WORDS_MAX)
            if added["unused"]:
                await conn.execute(self._sql.drop_unused_terms, tenant, added["unused"])
            return bool(added["changes"])
