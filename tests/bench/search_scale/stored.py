"""Passages of a bench stored as the service stores them, and their vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tests.bench.retrieval_database import Database
from wayline.documents import TextPage
from wayline.retrieval.documents.decode_document import Decoded, Original
from wayline.retrieval.documents.document import Chunk, RequestedDocument
from wayline.retrieval.documents.document_table import DocumentTable
from wayline.store import Store

if TYPE_CHECKING:
    from wayline.retrieval.embeddings.embedding import Vectors

MODEL = "mixed"
PASSAGES_OF_DOCUMENT = 50
AT_ONCE = 4
SHELVES, ROOMS = 20, 5
"""How many values a document's `shelf` and `room` have: one of the first holds 5 % of all, of the second 20 %."""
MAKE_INDEX = """
    CREATE INDEX chunk_vectors_384 ON chunk_vectors USING hnsw ((embedding::vector(384)) vector_cosine_ops)
    WHERE dimensions = 384
"""


@dataclass(frozen=True)
class Stored:
    """The passages of a tenant, as they lie in the database."""

    tenant: str
    set_id: int
    chunk_ids: list[str] = field(default_factory=list)
    vectors: list[Vectors] = field(default_factory=list)
    documents: list[int] = field(default_factory=list)
    """The number of each passage's document."""

    def matrix(self) -> Vectors:
        return np.stack(self.vectors)


async def store_passages(store: Store, tenant: str, passages: Sequence[tuple[str, Vectors | None]]) -> Stored:
    """Store passages by the service's own path, searchable by words; their vectors come with `store_vectors`."""
    table = DocumentTable(store)
    live = await table.live_set(tenant, model=MODEL, asked_dimensions=None)
    stored = Stored(tenant, live.set_id)
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(number: int, at: int) -> None:
        held = passages[at : at + PASSAGES_OF_DOCUMENT]
        document_id = f"d{number}"
        chunks = [Chunk(text, (), {}, f"{document_id}#{n}", n, n + len(text)) for n, (text, _) in enumerate(held)]
        stored.chunk_ids.extend(chunk.chunk_id for chunk in chunks)
        stored.vectors.extend(vector for _, vector in held if vector is not None)
        stored.documents.extend([number] * len(chunks))
        requested = _requested(tenant, document_id, number, live.set_id)
        decoded = Decoded(Original(b"x", "text/plain"), [TextPage("x")], None, "en")
        async with slots:
            await table.begin(requested)
            await table.replace(requested, decoded, chunks, None)

    await asyncio.gather(*(one(n, at) for n, at in enumerate(range(0, len(passages), PASSAGES_OF_DOCUMENT))))
    return stored


async def store_vectors(base: Database, every: Sequence[Stored]) -> None:
    """Copy the vectors in, and make their index once: one by one they would come in as well, and take far longer."""
    columns = ["tenant", "set_id", "chunk_id", "document_id", "dimensions", "embedding"]
    async with base.owner() as conn:
        await conn.execute("DROP INDEX chunk_vectors_384")
        for stored in every:
            placed = zip(stored.chunk_ids, stored.vectors, stored.documents, strict=True)
            rows = [(stored.tenant, stored.set_id, chunk, f"d{n}", len(vector), vector) for chunk, vector, n in placed]
            await conn.copy_records_to_table("chunk_vectors", schema_name="retrieval", columns=columns, records=rows)
        await conn.execute("UPDATE vector_sets SET dimensions = 384")
        await conn.execute("DELETE FROM pending_vectors")
        await conn.execute(MAKE_INDEX, timeout=3_600)
        await conn.execute("ANALYZE", timeout=3_600)


def _requested(tenant: str, document_id: str, number: int, set_id: int) -> RequestedDocument:
    return RequestedDocument(
        tenant=tenant,
        document_id=document_id,
        name=f"Volume {number % 97}",
        media_type="text/plain",
        size_bytes=1,
        metadata={"shelf": number % SHELVES, "room": number // SHELVES % ROOMS},
        embedding_model=MODEL,
        sequence=1,
        set_id=set_id,
    )
