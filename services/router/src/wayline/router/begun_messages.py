"""How often handlers began with messages that come again and again: so that restarts alone give no message up."""

from __future__ import annotations

from wayline.chassis import Delivery
from wayline.store import Store


class BegunMessages:
    """One row a message that was delivered very often."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def count(self, delivery: Delivery) -> int:
        """Count that a handler begins, before it does; return how many have begun and not ended."""
        async with self._store.system() as conn:
            return await conn.fetchval(
                self._store.sql.count_begun, f"{delivery.stream}/{delivery.consumer}", delivery.sequence
            )

    async def take_back(self, delivery: Delivery) -> None:
        """Count a handler no more that has ended, however that was."""
        async with self._store.system() as conn:
            await conn.execute(
                self._store.sql.take_back_begun, f"{delivery.stream}/{delivery.consumer}", delivery.sequence
            )
