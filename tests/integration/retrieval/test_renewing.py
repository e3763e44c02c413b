"""Passages that the version before stored are found until and after their words are renewed."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from wayline.retrieval import app
from wayline.retrieval.postgres import open_store
from wayline.retrieval.search import old_words, word_renewal
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


STATEMENTS_BEFORE = (
    """
    INSERT INTO documents (tenant, document_id, name, media_type, status, embedding_model, sequence)
    VALUES ($1, $2, 'page', 'text/plain', 'ready', $3, 1)
    """,
    """
    INSERT INTO chunks (
        tenant, chunk_id, document_id, position, name, text, metadata, words, words_count, embedding_model, dimensions,
        embedding
    )
    SELECT $1, $2 || '#' || n - 1, $2, n - 1, 'page', text, '{"headings": ["Top"]}', words,
        (SELECT sum(cardinality(positions)) FROM unnest(words)), $3, 1, '[1]'
    FROM unnest($4::text[]) WITH ORDINALITY AS page (text, n), words_of('page', 'Top', text) AS words
    """,
    """
    INSERT INTO terms AS known (tenant, term, chunks)
    SELECT $1, lexeme, count(*) FROM chunks, unnest(words) WHERE tenant = $1 AND document_id = $2 GROUP BY lexeme
    ON CONFLICT (tenant, term) DO UPDATE SET chunks = known.chunks + excluded.chunks
    """,
    """
    INSERT INTO corpora AS known (tenant, embedding_model, dimensions, chunks, words)
    SELECT $1, $3, 1, count(*), sum(words_count) FROM chunks WHERE tenant = $1 AND document_id = $2
    ON CONFLICT (tenant, embedding_model, dimensions) DO UPDATE SET
        chunks = known.chunks + excluded.chunks, words = known.words + excluded.words
    """,
)
"""What the version before did to store a document."""


async def store_documents(store: Store, tenant: str = "acme") -> None:
    """Store pages with the statements of the version before."""
    async with store.tenant(tenant) as conn:
        for document_id, pages in PAGES.items():
            arguments = (tenant, document_id, "words-alone", list(pages))
            for statement, given in zip(STATEMENTS_BEFORE, (3, 4, 2, 3), strict=True):
                await conn.execute(statement, *arguments[:given])


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
        return await owner("SELECT count(*) FROM retrieval.documents WHERE words_version < 5") == [(0,)]

    async def added() -> bool:
        return await owner("SELECT count(*) FROM retrieval.count_changes") == [(0,)]

    await until(renewed, why="every document is renewed")
    await until(added, why="what changed is counted")
    new = await words_of(owner)

    assert await owner(COUNTED) == []
    assert await owner(KNOWN) == []
    assert await owner("SELECT words = (SELECT sum(words_count) FROM retrieval.chunks) FROM retrieval.corpora") == [
        (True,)
    ]
    assert all("'~acme'" in words for _, words, _ in new)
    assert all("'~acme'" not in words for _, words, _ in old)
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
    assert counts == [("acme", 1, 3), ("other", 5, 3)]
    assert holding == [("other",)]
