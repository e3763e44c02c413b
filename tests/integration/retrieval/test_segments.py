"""Queries of common words find by postings what ranking every passage would find, however documents change."""

from __future__ import annotations

from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest

from wayline.contracts.knowledge import SearchKnowledge
from wayline.retrieval.documents.decode_document import Decoded, Original
from wayline.retrieval.documents.document import Chunk, RequestedDocument
from wayline.retrieval.documents.document_table import DocumentTable
from wayline.retrieval.embeddings.embed_texts import TextEmbedder
from wayline.retrieval.embeddings.embedding import LexicalHash
from wayline.retrieval.postgres import open_store
from wayline.retrieval.search.passage_table import PassageTable
from wayline.retrieval.search.search_passages import Searcher
from wayline.retrieval.search.segments import SegmentBuilder
from wayline.retrieval.search.wiring import query_embedder
from wayline.retrieval.search.word_counts import WordCounts
from wayline.retrieval.settings import Settings
from wayline.store import Store
from wayline.telemetry import Telemetry
from wayline.testkit import Database
from wayline.testkit.databases import PASSWORD, role_of

EMBEDDER = LexicalHash()
WORDS = ("alpha", "beta", "gamma", "delta", "omega")
QUERIES = ("alpha beta", "gamma delta omega", "alpha rare7", "omega")
EVERY, FEW = 1_000_000, 5
"""Candidates of a search that ranks every passage with a word, and of one that may rank almost none."""


@pytest.fixture
async def store(client: Any, database: Database) -> AsyncIterator[Store]:
    store = await open_store(database.as_role(role_of("retrieval"), PASSWORD), pool_size=4, wait_s=5)
    yield store
    await store.close()


def texts(seed: int) -> list[str]:
    """Passages in which every word of the queries is common, one or many times."""
    random = Random(seed)
    return [
        " ".join([*random.choices(WORDS, k=random.randint(2, 9)), f"rare{seed}", "filler " * random.randint(0, 5)])
        for _ in range(4)
    ]


async def put(store: Store, document_id: str, seed: int, *, sequence: int = 1) -> None:
    table = DocumentTable(store)
    requested = RequestedDocument("acme", document_id, "page", "text/plain", 1, {}, EMBEDDER.model, sequence)
    assert await table.begin(requested)
    pieces = texts(seed)
    read = Decoded(Original(b"", "text/plain"), [])
    chunks = [Chunk(one, (), {}, f"{document_id}#{at}", 0, len(one)) for at, one in enumerate(pieces)]
    assert await table.replace(requested, read, chunks, EMBEDDER.vectors(pieces))


async def found(store: Store, query: str, candidates: int) -> list[tuple[str, float]]:
    queries = query_embedder(Settings(), TextEmbedder(EMBEDDER, Telemetry("test")))
    searcher = Searcher(PassageTable(store), queries, Telemetry("test"), candidates, 10)
    hits = (await searcher.search(SearchKnowledge(tenant="acme", query=query, mode="keyword", top_k=10))).hits
    return [(hit.chunk_id, round(hit.score, 6)) for hit in hits]


async def same(store: Store) -> bool:
    return all([await found(store, query, FEW) == await found(store, query, EVERY) for query in QUERIES])


async def test_postings_find_what_ranking_every_passage_finds(store: Store, owner: Any):
    for seed in range(12):
        await put(store, f"d{seed}", seed)
    await WordCounts(store).add_all()
    assert not await same(store)

    builder = SegmentBuilder(store, chunks_min=20)
    await builder.build_all()
    assert await same(store)

    # A new version, a deletion and a new document are seen before the next segment is built.
    await put(store, "d3", 33, sequence=2)
    await DocumentTable(store).delete("acme", "d4", last=1)
    await put(store, "new", 44)
    assert await owner("SELECT count(*) FROM retrieval.segments") == [(1,)]
    assert await same(store)

    for seed in range(50, 70):
        await put(store, f"d{seed}", seed)
    await builder.build_all()
    assert await same(store)
    # The small segment went into the new one, without what is gone.
    assert await owner("SELECT chunks FROM retrieval.segments") == [((12 - 2 + 2 + 20) * 4,)]
    assert await owner("SELECT count(*) FROM retrieval.segment_chunks") == [((12 - 2 + 2 + 20) * 4,)]


async def test_a_tenant_of_few_passages_gets_no_segment(store: Store, owner: Any):
    await put(store, "d1", 1)

    await SegmentBuilder(store).build_all()

    assert await owner("SELECT count(*) FROM retrieval.segments") == [(0,)]
