"""The counts that ranking uses are right while changes wait, and are kept by statements of a bounded size."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from wayline.retrieval.documents import document_table as documents
from wayline.retrieval.documents.decode_document import Decoded, Original
from wayline.retrieval.documents.document import Chunk, RequestedDocument
from wayline.retrieval.documents.document_table import TIME_OUTS_MAX, DocumentTable
from wayline.retrieval.embeddings.embedding import LexicalHash
from wayline.retrieval.postgres import open_store
from wayline.retrieval.search import passage_table
from wayline.retrieval.search.passage_table import PassageTable
from wayline.retrieval.search.word_counts import WordCounts
from wayline.store import PostgresUnavailable, Store
from wayline.testkit import Database
from wayline.testkit.databases import PASSWORD, role_of

EMBEDDER = LexicalHash()
READ = Decoded(Original(b"", "text/plain"), [])


@pytest.fixture
async def store(client: Any, database: Database) -> AsyncIterator[Store]:
    store = await open_store(database.as_role(role_of("retrieval"), PASSWORD), pool_size=4, wait_s=5)
    yield store
    await store.close()


def request(sequence: int = 1) -> RequestedDocument:
    return RequestedDocument("acme", "d1", "page", "text/plain", 1, {}, EMBEDDER.model, sequence)


async def put(store: Store, texts: list[str], *, sequence: int = 1) -> bool:
    table, requested = DocumentTable(store), request(sequence)
    assert await table.begin(requested)
    chunks = [Chunk(text, (), {}, f"d1#{sequence}-{at}", 0, len(text)) for at, text in enumerate(texts)]
    return await table.replace(requested, READ, chunks, EMBEDDER.vectors(texts))


async def test_no_statement_counts_more_than_a_batch_of_passages(
    store: Store, owner: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(documents, "STORE_BATCH", 2)
    texts = [" ".join(f"word{n}x{m}" for m in range(50)) for n in range(9)]
    await put(store, texts)
    await put(store, texts[:3], sequence=2)

    counted = await owner("SELECT chunks, terms_count FROM retrieval.count_changes ORDER BY change")

    assert [chunks for chunks, _ in counted] == [2, 2, 2, 2, 1, -2, -2, -2, -2, -1, 2, 1]
    assert max(terms for _, terms in counted) <= 2 * 50 + 3
    await WordCounts(store).add_all()
    assert await owner("SELECT count(*), sum(chunks) FROM retrieval.terms WHERE term LIKE 'word%'") == [(150, 150)]
    assert await owner("SELECT chunks FROM retrieval.corpora") == [(3,)]
    assert await owner("SELECT count(*) FROM retrieval.count_changes") == [(0,)]


async def test_changes_are_added_in_pieces_of_a_bounded_size(store: Store, owner: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(documents, "STORE_BATCH", 1)
    await put(store, ["alpha beta", "alpha gamma", "alpha delta"])

    async with store.tenant("acme") as conn:
        added = await conn.fetchrow(store.sql.add_changes, "acme", 1)
        assert added["changes"] == 1
    async with store.tenant("acme") as conn:
        assert (await conn.fetchrow(store.sql.add_changes, "acme", 100_000))["changes"] == 2
    assert await owner("SELECT chunks FROM retrieval.terms WHERE term = 'alpha'") == [(3,)]


async def test_a_search_counts_what_is_not_added_yet(client: Any, start: Any, owner: Any, monkeypatch: Any):
    async def nothing(self: WordCounts) -> None:
        pass

    monkeypatch.setattr(WordCounts, "add_all", nothing)
    await start()
    await client.ingest("d1", "The tortoise wins.")
    await client.ingest("d2", "The hare sleeps.")
    await client.ingest("d2", "The hare runs.")

    assert await owner("SELECT count(*) FROM retrieval.terms") == [(0,)]
    assert [hit.document_id for hit in (await client.search("tortoise", mode="keyword")).hits] == ["d1"]
    assert (await client.search("sleeps", mode="keyword")).hits == ()


async def test_a_search_reads_the_newest_of_too_many_uncounted_words(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(documents, "STORE_BATCH", 1)
    monkeypatch.setattr(passage_table, "UNCOUNTED_WORDS_MAX", 10)
    await put(store, [*["the tortoise wins"] * 3, *["the hare sleeps"] * 2])

    async with PassageTable(store).searching("acme") as search:
        counted = {term.word: term.chunks for term in await search.terms("tortoise hare")}

    # Five words of each passage, its tenant and language among them: what is not read may be in a passage.
    assert counted == {"tortois": 1, "hare": 2}


async def test_a_document_is_found_while_most_words_are_uncounted(
    client: Any, start: Any, owner: Any, monkeypatch: pytest.MonkeyPatch
):
    async def nothing(self: WordCounts) -> None:
        pass

    monkeypatch.setattr(WordCounts, "add_all", nothing)
    monkeypatch.setattr(passage_table, "UNCOUNTED_WORDS_MAX", 1)
    await start()
    await client.ingest("d1", "The tortoise wins.")
    await client.ingest("d2", "The hare sleeps.")

    assert await owner("SELECT count(*) FROM retrieval.terms") == [(0,)]
    for query in ("tortoise", "hare", '"tortoise wins"'):
        hits = (await client.search(query, mode="keyword", syntax="web")).hits
        assert [hit.document_id for hit in hits] == ["d2" if query == "hare" else "d1"], query


async def test_a_document_whose_statements_time_out_again_and_again_fails(
    store: Store, owner: Any, monkeypatch: pytest.MonkeyPatch
):
    async def too_slow(self: DocumentTable, *args: Any) -> bool:
        raise PostgresUnavailable(where="here", cause="TimeoutError", statement_too_slow=True)

    monkeypatch.setattr(DocumentTable, "_replace", too_slow)
    table, requested = DocumentTable(store), request()
    assert await table.begin(requested)
    for _ in range(TIME_OUTS_MAX - 1):
        with pytest.raises(PostgresUnavailable):
            await table.replace(requested, READ, [], [])

    assert await table.replace(requested, READ, [], []) is False
    [(status, error)] = await owner("SELECT status, error FROM retrieval.documents")
    assert status == "failed"
    assert "longer than a statement may" in error
