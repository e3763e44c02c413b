"""Sets of vectors in Postgres: what waits to be embedded, what is stored, and which set is searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from wayline.contracts.errors import Conflict, NotFound
from wayline.contracts.vector_sets import VectorSet
from wayline.retrieval.documents.document import embeddable_text
from wayline.retrieval.search.passage_table import with_dimensions
from wayline.store import Record, Store
from wayline.store.queries import Queries

if TYPE_CHECKING:
    from wayline.retrieval.embeddings.embedding import Vector, Vectors
    from wayline.store import Connection

CLAIM_S = 150.0
"""How long a document is one process's to embed a part of; longer than any call of an embedder."""
SLICE_PASSAGES = 64
"""Passages of a document that are embedded before another document has its turn."""
SWEEP_BATCH = 5_000
UNDO_S = 86_400.0
"""How long the set before the live one is kept."""
TENANTS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Pending:
    """A document that has a part of its passages to be embedded for a set."""

    tenant: str
    set_id: int
    document_id: str
    sequence: int


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage without a vector."""

    chunk_id: str
    text: str
    text_sha256: bytes | None


class VectorSetTable:
    """The sets of all tenants."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sql = Queries.load(files(__package__ or "").joinpath("queries.sql"))

    # What is left to embed

    async def tenants_waiting(self) -> list[str]:
        """Return some tenants with documents to embed, in no order."""
        async with self._store.system() as conn:
            return [row["tenant"] for row in await conn.fetch(self._sql.tenants_waiting, TENANTS_AT_ONCE)]

    async def claim(self, tenant: str) -> Pending | None:
        """Take a tenant's next document for a while; None: all are in hand."""
        row = await self._store.fetchrow(tenant, self._sql.claim_pending, tenant, CLAIM_S)
        return None if row is None else Pending(tenant, row["set_id"], row["document_id"], row["sequence"])

    async def release(self, pending: Pending, *, again_in_s: float = 0.0, error: str | None = None) -> None:
        """Give a document back, to be taken again after a while."""
        await self._store.execute(pending.tenant, self._sql.release_pending, *_key(pending), again_in_s, error)

    async def end(self, pending: Pending) -> None:
        """Note that all passages of a document's version have vectors."""
        await self._store.execute(pending.tenant, self._sql.end_pending, *_key(pending))

    async def get(self, tenant: str, set_id: int) -> Record | None:
        """Return a set's row."""
        return await self._store.fetchrow(tenant, self._sql.get_set, tenant, set_id)

    async def passages(self, pending: Pending, of: Record) -> list[StoredPassage]:
        """Return a document's next passages without a vector in the set; those of earlier versions are taken over."""
        tenant, set_id, document_id = pending.tenant, pending.set_id, pending.document_id
        wanted = of["asked_dimensions"] or of["dimensions"]
        await self._store.execute(tenant, self._sql.adopt_vectors, tenant, set_id, document_id, of["model"], wanted)
        rows = await self._store.fetch(
            tenant, self._sql.chunks_without_vectors, tenant, set_id, document_id, SLICE_PASSAGES
        )
        return [StoredPassage(row["chunk_id"], _text(row), row["text_sha256"]) for row in rows]

    async def store(self, pending: Pending, passages: Sequence[StoredPassage], vectors: Vectors) -> None:
        """Store vectors of passages that are still as they were embedded."""
        tenant, dimensions = pending.tenant, vectors.shape[1]
        rows = [
            (tenant, pending.set_id, passage.chunk_id, pending.document_id, dimensions, vector, passage.text_sha256)
            for passage, vector in zip(passages, vectors, strict=True)
        ]
        async with self._store.tenant(tenant) as conn:
            await conn.execute(self._sql.note_dimensions, tenant, pending.set_id, dimensions)
            await conn.executemany(self._sql.add_vector, rows)

    # Which set is searched

    async def sets(self, tenant: str) -> tuple[VectorSet, ...]:
        """Return a tenant's sets, the oldest first."""
        rows = await self._store.fetch(tenant, self._sql.sets, tenant)
        return tuple(VectorSet(**dict(row)) for row in rows)

    async def rebuild(self, model: str, asked_dimensions: int | None) -> int:
        """Begin a set of the settings' model for tenants whose live one is of another; returns how many."""
        async with self._store.system() as conn:
            rows = await conn.fetch(self._sql.tenants_to_rebuild, model, asked_dimensions)
        for row in rows:
            await self.build(row["tenant"], model, asked_dimensions, automatic=True)
        return len(rows)

    async def build(self, tenant: str, model: str, asked_dimensions: int | None, *, automatic: bool) -> None:
        """Begin a set in place of one that is being built."""
        async with self._store.tenant(tenant) as conn:
            await conn.execute(self._sql.lock_sets, tenant)
            await conn.execute(self._sql.drop_next_set, tenant)
            set_id = await conn.fetchval(self._sql.add_set, tenant, model, asked_dimensions, automatic)
            await conn.execute(self._sql.await_all, tenant, set_id)

    async def switch(self, tenant: str, *, back: bool = False, automatic: bool = False) -> None:
        """Put the next set, or the one before, in the live one's place. Raises NotFound, and Conflict."""
        async with self._store.tenant(tenant) as conn:
            await conn.execute(self._sql.lock_sets, tenant)
            states = ["old"] if back else ["shadow"]
            found = await conn.fetchrow(self._sql.find_set, tenant, states)
            if found is None:
                building = await conn.fetchrow(self._sql.find_set, tenant, ["building"])
                if building is not None and not back:
                    raise Conflict("The new set of vectors is not whole yet: see its progress, and switch then.")
                raise NotFound("set of vectors", "the one before" if back else "a new one")
            await self._put_live(conn, tenant, found)
            if not automatic:
                chosen = (tenant, found["model"], found["asked_dimensions"])
                await conn.execute(self._sql.choose_model, *chosen)

    async def _put_live(self, conn: Connection, tenant: str, found: Record) -> None:
        live = await conn.fetchrow(self._sql.find_set, tenant, ["live"])
        if live is not None:
            await conn.execute(self._sql.set_state, tenant, live["set_id"], "old")
            await conn.execute(self._sql.drop_old_sets, tenant, live["set_id"])
        await conn.execute(self._sql.set_state, tenant, found["set_id"], "live")
        if found["state"] == "old":
            # What was ingested while nobody searched it is looked for; the rest only costs the look.
            await conn.execute(self._sql.await_all, tenant, found["set_id"])

    # Comparing, and forgetting

    async def whole(self) -> list[Record]:
        """Return the sets in which every passage has its vector and that are to be compared or switched to."""
        async with self._store.system() as conn:
            return await conn.fetch(self._sql.whole_sets)

    async def live(self, tenant: str) -> Record | None:
        """Return the row of the set that is searched."""
        return await self._store.fetchrow(tenant, self._sql.find_set, tenant, ["live"])

    async def last_queries(self, tenant: str, count: int) -> list[str]:
        """Return a tenant's last distinct queries, the newest first."""
        return [row["query"] for row in await self._store.fetch(tenant, self._sql.last_queries, tenant, count)]

    async def nearest(self, tenant: str, set_id: int, vector: Vector, count: int) -> set[str]:
        """Return the passages of a set that are nearest to a vector."""
        sql = with_dimensions(self._sql.nearest, len(vector), asked="$3")
        rows = await self._store.fetch(tenant, sql, tenant, set_id, vector, count)
        return {row["chunk_id"] for row in rows}

    async def compared(self, tenant: str, set_id: int, *, overlap: float | None, queries: int) -> None:
        """Note what came of comparing a set with the live one."""
        await self._store.execute(tenant, self._sql.note_overlap, tenant, set_id, overlap, queries)

    async def sweep(self) -> None:
        """Forget sets that cannot come back, a batch of vectors at a time."""
        async with self._store.system() as conn:
            await conn.execute(self._sql.forget_old_sets, UNDO_S)
            gone = await conn.fetch(self._sql.gone_sets)
        for row in gone:
            key = (row["tenant"], row["set_id"])
            await self._store.execute(row["tenant"], self._sql.sweep_pending, *key)
            while await self._swept(*key) == SWEEP_BATCH:
                pass
            await self._store.execute(row["tenant"], self._sql.forget_set, *key)

    async def _swept(self, tenant: str, set_id: int) -> int:
        told = await self._store.execute(tenant, self._sql.sweep_vectors, tenant, set_id, SWEEP_BATCH)
        return int(told.rpartition(" ")[2])


def _key(pending: Pending) -> tuple[str, int, str, int]:
    return pending.tenant, pending.set_id, pending.document_id, pending.sequence


def _text(row: Record) -> str:
    headings = row["headings"]
    kept = [one for one in headings if isinstance(one, str)] if isinstance(headings, list) else []
    return embeddable_text(row["name"], kept, row["text"])
