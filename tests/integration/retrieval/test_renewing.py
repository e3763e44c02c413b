"""Passages that the version before stored are found until and after their words are renewed."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from wayline.retrieval import app, word_renewal
from wayline.retrieval.adapters import old_words
from wayline.retrieval.adapters.documents import DocumentTable
from wayline.retrieval.adapters.postgres import open_store
from wayline.retrieval.decode_document import Decoded, Original
from wayline.retrieval.documents import Chunk, RequestedDocument
from wayline.retrieval.embedding import LexicalHash
from wayline.store import Store, migrate
from wayline.testkit import Database, until
from wayline.testkit.databases import PASSWORD

LAST_BEFORE = "0003"
ROLE = "wayline_retrieval"
PAGES = {
    "cafe": ("Le café ouvre à huit heures.", "Rien ici."),
    "quotes": ("They said “jobs”—twice.", "And INV-2024-001 was paid."),
    "plain": ("Nothing of this changes.", "Nor of this."),
}


async def store_documents(store: Store, tenant: str = "acme") -> None:
    """Store pages with the statements that the version before has too."""
    documents, embedder = DocumentTable(store), LexicalHash()
    for document_id, pages in PAGES.items():
        requested = RequestedDocument(tenant, document_id, "page", "text/plain", 1, {}, embedder.model, sequence=1)
        assert await documents.begin(requested)
        chunks = [Chunk(text, ("Top",), {"headings": ["Top"]}) for text in pages]
        reading = Decoded(Original(b"", "text/plain"), [])
        assert await documents.replace(requested, reading, chunks, embedder.vectors(list(pages)))


@pytest.fixture
def database(empty_database: Database) -> Database:
    """Leave the tables to the test."""
    return empty_database


@pytest.fixture
async def before(database: Database, tmp_path: Path, owner: Any) -> AsyncIterator[tuple[Store, Any]]:
    """A store of the version before, and the words in it. Ask for it before what migrates to this version."""
    for file in app.migrations().glob("*.sql"):
        if file.name[:4] <= LAST_BEFORE:
            shutil.copy(file, tmp_path)
    await migrated(database, tmp_path)
    # Of later columns the statements of today need these.
    await owner("ALTER TABLE retrieval.originals ADD COLUMN text_tokens bigint")
    await owner("ALTER TABLE retrieval.documents ADD COLUMN trust text NOT NULL DEFAULT 'trusted'")
    store = await open_store(database.as_role(ROLE, PASSWORD), pool_size=2, wait_s=5)
    await store_documents(store)
    yield store, await words_of(owner)
    await store.close()


async def migrated(database: Database, directory: Path) -> None:
    await migrate(database.dsn, schema="retrieval", role=ROLE, password=PASSWORD, directory=directory, vector=True)


async def words_of(owner: Any) -> list[tuple[Any, ...]]:
    return await owner("SELECT chunk_id, words, words_count FROM retrieval.chunks ORDER BY chunk_id")


COUNTED = """
    SELECT lexeme, count(*) FROM retrieval.chunks, unnest(words) GROUP BY lexeme
    EXCEPT SELECT term, chunks FROM retrieval.terms
"""
KNOWN = "SELECT term FROM retrieval.terms EXCEPT SELECT lexeme FROM retrieval.chunks, unnest(words)"


async def test_renewed_passages_are_those_that_would_be_stored_now(
    before: tuple[Store, Any], start: Any, client: Any, owner: Any, monkeypatch: pytest.MonkeyPatch
):
    store, old = before
    monkeypatch.setattr(old_words, "PASSAGES_MAX", 1)
    monkeypatch.setattr(word_renewal, "PAUSE_S", 0)
    await start()

    async def renewed() -> bool:
        return await owner("SELECT count(*) FROM retrieval.documents WHERE words_version < 2") == [(0,)]

    await until(renewed, within=20, why="every document is renewed")
    new = await words_of(owner)

    assert await owner(COUNTED) == []
    assert await owner(KNOWN) == []
    assert await owner("SELECT words = (SELECT sum(words_count) FROM retrieval.chunks) FROM retrieval.corpora") == [
        (True,)
    ]
    assert {one[0] for one, other in zip(old, new, strict=True) if one != other} == {"cafe#0", "quotes#0", "quotes#1"}
    for query in ("cafe", "café", "jobs", "INV-2024-001"):
        assert (await client.search(query, mode="keyword")).hits, query
    await owner("TRUNCATE retrieval.chunks, retrieval.documents, retrieval.terms, retrieval.corpora")
    await store_documents(store)
    assert await words_of(owner) == new


async def test_words_of_before_are_found_until_they_are_renewed(
    before: tuple[Store, Any], start: Any, client: Any, monkeypatch: pytest.MonkeyPatch
):
    async def nothing(self: Any) -> bool:
        return False

    monkeypatch.setattr(word_renewal.WordRenewal, "_renew_all", nothing)
    await start()

    hits = (await client.search("café", mode="keyword")).hits

    assert [hit.chunk_id for hit in hits] == ["cafe#0"]


async def test_documents_an_older_build_stores_have_the_new_words(
    before: tuple[Store, Any], database: Database, owner: Any
):
    await migrated(database, app.migrations())
    await store_documents(before[0], tenant="other")

    counts = await owner("SELECT tenant, words_version, count(*) FROM retrieval.documents GROUP BY 1, 2 ORDER BY 1")
    holding = await owner("SELECT tenant FROM retrieval.chunks WHERE 'cafe' = ANY (tsvector_to_array(words)) ")
    assert counts == [("acme", 1, 3), ("other", 3, 3)]
    assert holding == [("other",)]
