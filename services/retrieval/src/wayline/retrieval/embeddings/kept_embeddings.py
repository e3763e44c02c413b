"""Embeddings that are kept as they come: found again by tenant, model and text, until they are old or too many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from wayline.chassis import Periodic
from wayline.store import Store

if TYPE_CHECKING:
    from wayline.retrieval.embeddings.embedding import Vector, Vectors

ROW_BYTES = 120
"""Of a kept embedding beside its numbers."""
SWEEP_BATCH = 5_000
"""Kept embeddings that are forgotten in one statement."""
SWEEP_EVERY_S = 600.0


class KeptEmbeddingTable:
    """The embeddings that are kept of each tenant."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sql = store.sql

    async def find(self, tenant: str, model: str, texts: Iterable[bytes]) -> Mapping[bytes, Vector]:
        """Return the kept embeddings of these texts, by the hash of the text."""
        rows = await self._store.fetch(tenant, self._sql.find_kept_embeddings, tenant, model, list(texts))
        return {row["text_sha256"]: row["embedding"].to_numpy() for row in rows}

    async def keep(self, tenant: str, model: str, texts: Sequence[bytes], vectors: Vectors) -> None:
        """Keep what a provider has answered."""
        size = vectors.shape[1] * 4 + ROW_BYTES
        rows = [(tenant, model, text, vector, size) for text, vector in zip(texts, vectors, strict=True)]
        async with self._store.tenant(tenant) as conn:
            await conn.executemany(self._sql.keep_embedding, rows)


class KeptEmbeddingSweep:
    """Forgets embeddings that nobody has used for long, and each tenant's oldest above its share."""

    def __init__(self, store: Store, *, unused_max_s: float, per_tenant_max_bytes: int) -> None:
        self._store = store
        self._unused_max_s = unused_max_s
        self._most = per_tenant_max_bytes
        self._periodic = Periodic("sweep of kept embeddings", self.sweep, every_s=SWEEP_EVERY_S)
        self.start, self.stop = self._periodic.start, self._periodic.stop

    async def sweep(self) -> int:
        """Forget what is too old or too much; returns how many embeddings were forgotten."""
        return await self._forget_unused() + await self._forget_surplus()

    async def _forget_unused(self) -> int:
        forgotten = 0
        while True:
            async with self._store.system() as conn:
                told = await conn.execute(self._store.sql.forget_unused_embeddings, self._unused_max_s, SWEEP_BATCH)
            count = int(told.rpartition(" ")[2])
            forgotten += count
            if count < SWEEP_BATCH:
                return forgotten

    async def _forget_surplus(self) -> int:
        async with self._store.system() as conn:
            full = await conn.fetch(self._store.sql.tenants_with_surplus_embeddings, self._most)
        forgotten = 0
        for row in full:
            async with self._store.tenant(row["tenant"]) as conn:
                told = await conn.execute(self._store.sql.forget_surplus_embeddings, row["tenant"], self._most)
            forgotten += int(told.rpartition(" ")[2])
        return forgotten
