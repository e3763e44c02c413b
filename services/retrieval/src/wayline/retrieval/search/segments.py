"""Build segments of posting lists from stored passages, and merge small ones, beside everything else."""

from __future__ import annotations

import structlog

from wayline.chassis import Periodic
from wayline.retrieval.search.postings import IMPACT_MAX
from wayline.retrieval.search.ranking import K1, B
from wayline.store import Connection, Record, Store

log = structlog.get_logger()

CHUNKS_MIN = 2_000
"""Passages in no segment from which on one is built of them: until then searches rank them one by one."""
CHUNKS_MAX = 32_768
"""Passages of one segment, about: a larger one takes too long to build."""
EVERY_S = 10.0


class SegmentBuilder:
    """Puts the documents of each tenant into segments, every few seconds."""

    def __init__(self, store: Store, *, chunks_min: int = CHUNKS_MIN, every_s: float = EVERY_S) -> None:
        self._store = store
        self._sql = store.sql
        self._chunks_min = chunks_min
        periodic = Periodic("segments of words", self.build_all, every_s=every_s, rest_factor=1.0)
        self.start, self.stop = periodic.start, periodic.stop

    async def build_all(self) -> None:
        """Build what is to be built, unless another service is at it."""
        async with self._store.system() as conn:
            tenants = [row["tenant"] for row in await conn.fetch(self._sql.tenants_to_segment, self._chunks_min)]
        for tenant in tenants:
            while await self._build(tenant):
                pass

    async def _build(self, tenant: str) -> bool:
        """Build one segment of documents that are in none and of small segments; return whether there may be more."""
        async with self._store.tenant(tenant) as conn:
            if not await conn.fetchval(self._sql.lock_segments, tenant):
                return False
            fresh = await conn.fetch(self._sql.documents_to_segment, tenant, CHUNKS_MAX)
            chunks = sum(row["chunks"] for row in fresh)
            if chunks < self._chunks_min:
                return False
            merged = _mergeable(await conn.fetch(self._sql.live_segments, tenant), chunks)
            documents = [*fresh, *await conn.fetch(self._sql.documents_of_segments, tenant, merged)]
            await self._store_segment(conn, tenant, documents, merged)
        log.info("segment of words built", tenant=tenant, documents=len(documents), merged=len(merged))
        return True

    async def _store_segment(self, conn: Connection, tenant: str, documents: list[Record], merged: list[int]) -> None:
        names = [row["document_id"] for row in documents]
        await conn.execute(self._sql.use_build_settings)
        average = await conn.fetchval(self._sql.average_words, tenant)
        segment = await conn.fetchval(self._sql.add_segment, tenant, sum(row["chunks"] for row in documents))
        await conn.execute(
            self._sql.add_postings, tenant, segment, names, K1, B, max(1.0, float(average or 1)), float(IMPACT_MAX)
        )
        await conn.execute(self._sql.put_in_segment, tenant, segment, names, [row["sequence"] for row in documents])
        if merged:
            for statement in (self._sql.drop_postings, self._sql.drop_segment_chunks, self._sql.drop_segments):
                await conn.execute(statement, tenant, merged)


def _mergeable(segments: list[Record], chunks: int) -> list[int]:
    """Return the segments no larger than what they would join, smallest first, and those that are mostly gone.

    Each passage is built anew about as often as its segment doubles.
    """
    chosen: list[int] = []
    for row in segments:
        if chunks + row["live"] > CHUNKS_MAX:
            break
        if row["live"] <= chunks or row["live"] * 2 < row["chunks"]:
            chosen.append(row["segment"])
            chunks += row["live"]
    return chosen
