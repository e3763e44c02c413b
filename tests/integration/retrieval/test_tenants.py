"""One tenant's documents are nobody else's, whatever they are called."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
import pytest_asyncio
import structlog
import structlog.testing

from wayline.contracts.knowledge import Filter
from wayline.retrieval.postgres import open_store
from wayline.retrieval.search.passage_table import PassageTable
from wayline.retrieval.search.search_plan import Allowed, WordsLeg
from wayline.store import Store, rls_gaps
from wayline.testkit import Database, Platform
from wayline.testkit.databases import migrate_service

from .conftest import Client, new_tenant

pytestmark = pytest.mark.asyncio(loop_scope="module")

PASSAGES = """
    INSERT INTO retrieval.documents (tenant, document_id, name, media_type, status)
    VALUES ('{tenant}', 'd', 'page', 'text/plain', 'ready');
    INSERT INTO retrieval.chunks (
        tenant, chunk_id, document_id, position, name, text, metadata, words, words_count, embedding_model, dimensions,
        embedding
    )
    SELECT '{tenant}', 'd#' || n, 'd', n, 'page', repeat('some text ', 100), '{{}}', words, 2, 'none', 1, '[1]'
    FROM generate_series(1, {count}) AS n,
        retrieval.words_of('page', '', CASE WHEN n % {every} = 0 THEN 'tortoise ' ELSE '' END || 'race ' || n) AS words
"""
ROWS_READ = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'chunks'"


@pytest.fixture
def acme(tenant_client: Client) -> Client:
    return tenant_client


@pytest.fixture
def globex(module_platform: Platform) -> Client:
    return new_tenant(module_platform)


async def test_two_tenants_have_documents_of_the_same_id(acme: Client, globex: Client):
    await acme.ingest("d1", "The tortoise of acme.")
    await globex.ingest("d1", "The tortoise of globex.")
    await globex.ingest("d2", "Only globex has a tortoise here.")

    for mode in ("keyword", "vector", "hybrid"):
        found = (await acme.search("tortoise globex", mode=mode, top_k=100)).hits
        assert [hit.text for hit in found] == ["The tortoise of acme."]
    named = Filter(document_ids=("d2",))
    assert (await acme.search("tortoise", filter=named)).hits == ()

    await acme.delete("d1")
    assert await acme.get("d1") is None
    kept = await globex.get("d1")
    assert kept and kept.status == "ready"
    assert len((await globex.search("tortoise", mode="keyword")).hits) == 2


async def test_what_others_store_does_not_change_how_words_are_weighed(acme: Client, globex: Client):
    await acme.ingest("d1", "tortoise race")
    before = await acme.search("tortoise race", mode="keyword")
    await globex.ingest("d9", "tortoise " * 50)

    assert await acme.search("tortoise race", mode="keyword") == before


async def test_every_tenant_table_forces_row_level_security(module_platform: Platform):
    await module_platform.migrate("retrieval")
    async with module_platform.superuser() as conn:
        tables = await conn.fetch(
            "SELECT table_name FROM information_schema.columns "
            "WHERE table_schema = 'retrieval' AND column_name = 'tenant'"
        )
        assert {row["table_name"] for row in tables} >= {
            "documents",
            "originals",
            "chunks",
            "terms",
            "corpora",
            "count_changes",
            "postings",
            "segment_chunks",
            "segments",
            "embedding_calls",
            "kept_embeddings",
            "uploads",
        }
        assert await rls_gaps(conn) == []


async def test_the_word_index_serves_under_row_level_security(module_platform: Platform, acme: Client):
    """Postgres keeps an index from conditions it does not know to be leakproof."""
    await acme.ingest("d1", "The tortoise.")
    dsn = await module_platform.migrate("retrieval")
    conn = await asyncpg.connect(dsn, server_settings={"search_path": "retrieval, public"})
    try:
        await conn.execute(f"SET enable_seqscan = off; SET wayline.tenant = '{acme.tenant}'")
        plan = await conn.fetch("EXPLAIN SELECT * FROM chunks WHERE words @@ 'tortois'::tsquery")
        assert any("chunks_words" in row[0] for row in plan)
    finally:
        await conn.close()


TERMS = """
    INSERT INTO retrieval.terms (tenant, term, chunks)
    SELECT '{tenant}', lexeme, count(*) FROM retrieval.chunks, unnest(words)
    WHERE tenant = '{tenant}' AND lexeme NOT LIKE '~%' GROUP BY lexeme
    ON CONFLICT (tenant, term) DO UPDATE SET chunks = excluded.chunks
"""
EVERY_ROW_READ = """
    SELECT relname, seq_tup_read + coalesce(idx_tup_fetch, 0) AS rows
    FROM pg_stat_xact_user_tables WHERE schemaname = 'retrieval' AND seq_tup_read + coalesce(idx_tup_fetch, 0) > 0
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def neighbours(module_platform: Platform) -> AsyncIterator[tuple[Any, Store]]:
    """Store many passages of two tenants; yield a connection of the owner, and the tables as the service has them."""
    dsn = await module_platform.migrate("retrieval")
    conn = await asyncpg.connect(module_platform.database.dsn, server_settings={"search_path": "retrieval, public"})
    for tenant, count, every in (("globex", 2_000, 4), ("acme", 1_500, 500)):
        await add_passages(conn, tenant, "d", count=count, every=every)
    store = await open_store(dsn, pool_size=1, wait_s=5)
    yield conn, store
    await store.close()
    await conn.close()


async def test_no_passage_of_another_tenant_is_read_for_a_search(neighbours: tuple[Any, Store]):
    leg = WordsLeg("'tortois'", ["'tortois'"], [1.0], 2.0, 1.0)
    async with searching(neighbours[1]) as search:
        found = await search.best(leg, None, allowed=Allowed(), candidates=10, top_k=10, min_score=None)
        read = await search._conn.fetchval(ROWS_READ)

    assert len(found) == 3
    # Each is read twice: to be ranked, and to be shown.
    assert read == 6


async def test_rows_that_a_search_reads_do_not_tell_of_another_tenant(neighbours: tuple[Any, Store]):
    """By words, spelling, beginnings and filters: what a neighbour adds with the same words changes no count."""
    conn, store = neighbours
    before = await rows_read(store)
    await add_passages(conn, "globex", "e", count=3_000, every=1)
    after = await rows_read(store)

    assert before == after and {"chunks", "documents", "terms"} <= before.keys()


async def add_passages(conn: Any, tenant: str, document_id: str, *, count: int, every: int) -> None:
    await conn.execute(f"SET wayline.tenant = '{tenant}'")
    made = PASSAGES.format(tenant=tenant, count=count, every=every)
    await conn.execute(made.replace("'d'", f"'{document_id}'").replace("'d#'", f"'{document_id}#'"))
    await conn.execute(TERMS.format(tenant=tenant))
    await conn.execute(
        "INSERT INTO documents (tenant, document_id, name, media_type, status, metadata) "
        f"SELECT '{tenant}', '{document_id}' || n, 'page', 'text/plain', 'ready', jsonb_build_object('shelf', n % 100) "
        f"FROM generate_series(1, {count}) AS n"
    )
    await conn.execute("ANALYZE chunks; ANALYZE documents; ANALYZE terms")


@asynccontextmanager
async def searching(store: Store) -> AsyncIterator[Any]:
    """Begin a search of acme, with no row counted that was read before it."""
    async with store.system() as conn:
        await conn.execute("SELECT pg_stat_force_next_flush()")
    async with PassageTable(store).searching("acme") as search:
        yield search


async def rows_read(store: Store) -> dict[str, int]:
    """Count the rows of each table that acme's search reads."""
    leg = WordsLeg("'tortois'", ["'tortois'"], [1.0], 2.0, 1.0)
    async with searching(store) as search:
        await search.corpora()
        await search.terms("tortoise race")
        await search.near_terms("tortois")
        await search.terms_that_begin("tor")
        allowed = await search.narrow(Allowed(metadata={"shelf": 3}, names=("ann",)))
        for whom in (Allowed(), allowed):
            await search.best(leg, None, allowed=whom, candidates=10, top_k=10, min_score=None)
        return {row["relname"]: row["rows"] for row in await search._conn.fetch(EVERY_ROW_READ)}


async def test_a_restored_database_has_its_word_index_declared_again(empty_database: Database):
    conn = await asyncpg.connect(empty_database.dsn)
    try:
        dsn = await migrate_service(empty_database, "retrieval")
        # What dump and restore leave out.
        await conn.execute("ALTER FUNCTION pg_catalog.ts_match_vq(tsvector, tsquery) NOT LEAKPROOF")
        with structlog.testing.capture_logs() as logs:
            await (await open_store(dsn, pool_size=1, wait_s=5)).close()
        assert [line for line in logs if "wayline migrate" in line["event"]]

        await migrate_service(empty_database, "retrieval")

        with structlog.testing.capture_logs() as logs:
            await (await open_store(dsn, pool_size=1, wait_s=5)).close()
        assert logs == []
    finally:
        await conn.close()
