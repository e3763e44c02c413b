"""One tenant's documents are nobody else's, whatever they are called."""

from typing import Any

import asyncpg
import structlog
import structlog.testing

from wayline.chassis import Service
from wayline.contracts.knowledge import DeleteDocument, DocumentDeleted, Filter
from wayline.retrieval.postgres import open_store
from wayline.retrieval.search.passage_table import PassageTable
from wayline.retrieval.search.search_plan import Allowed, WordsLeg
from wayline.store import Store, rls_gaps
from wayline.testkit import Database, Platform
from wayline.testkit.databases import PASSWORD, migrate_service, role_of

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


async def test_two_tenants_have_documents_of_the_same_id(service: Service, client: Any):
    await client.ingest("d1", "The tortoise of acme.", tenant="acme")
    await client.ingest("d1", "The tortoise of globex.", tenant="globex")
    await client.ingest("d2", "Only globex has a tortoise here.", tenant="globex")

    for mode in ("keyword", "vector", "hybrid"):
        acme = (await client.search("tortoise globex", mode=mode, top_k=100)).hits
        assert [hit.text for hit in acme] == ["The tortoise of acme."]
    named = Filter(document_ids=("d2",))
    assert (await client.search("tortoise", filter=named)).hits == ()

    await client.bus.ask(DeleteDocument(tenant="acme", document_id="d1"), DocumentDeleted)
    assert await client.get("d1", tenant="acme") is None
    assert (await client.get("d1", tenant="globex")).status == "ready"
    assert len((await client.search("tortoise", tenant="globex", mode="keyword")).hits) == 2


async def test_what_others_store_does_not_change_how_words_are_weighed(service: Service, client: Any):
    await client.ingest("d1", "tortoise race")
    before = await client.search("tortoise race", mode="keyword")
    await client.ingest("d9", "tortoise " * 50, tenant="globex")

    assert await client.search("tortoise race", mode="keyword") == before


async def test_every_tenant_table_forces_row_level_security(platform: Platform):
    await platform.migrate("retrieval")
    async with platform.superuser() as conn:
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


async def test_the_word_index_serves_under_row_level_security(service: Service, client: Any):
    """Postgres keeps an index from conditions it does not know to be leakproof."""
    await client.ingest("d1", "The tortoise.")
    conn = await asyncpg.connect(service.settings.postgres_dsn, server_settings={"search_path": "retrieval, public"})
    try:
        await conn.execute("SET enable_seqscan = off; SET wayline.tenant = 'acme'")
        plan = await conn.fetch("EXPLAIN SELECT * FROM chunks WHERE words @@ 'tortois'::tsquery")
        assert any("chunks_words" in row[0] for row in plan)
    finally:
        await conn.close()


async def test_no_passage_of_another_tenant_is_read_for_a_search(client: Any, database: Database):
    conn = await asyncpg.connect(database.dsn, server_settings={"search_path": "retrieval, public"})
    try:
        for tenant, count, every in (("globex", 4_000, 4), ("acme", 3_000, 1_000)):
            await conn.execute(f"SET wayline.tenant = '{tenant}'")
            await conn.execute(PASSAGES.format(tenant=tenant, count=count, every=every))
        await conn.execute("ANALYZE chunks")
    finally:
        await conn.close()
    store = await open_store(database.as_role(role_of("retrieval"), PASSWORD), pool_size=1, wait_s=5)
    leg = WordsLeg("'tortois'", ["'tortois'"], [1.0], 2.0, 1.0)
    try:
        async with PassageTable(store).searching("acme") as search:
            found = await search.best(leg, None, allowed=Allowed(), candidates=10, top_k=10, min_score=None)
            read = await search._conn.fetchval(ROWS_READ)
    finally:
        await store.close()

    assert len(found) == 3
    # Each is read twice: to be ranked, and to be shown.
    assert read == 6


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


async def test_rows_that_a_search_reads_do_not_tell_of_another_tenant(client: Any, database: Database):
    """By words, spelling, beginnings and filters: what a neighbour adds with the same words changes no count."""
    conn = await asyncpg.connect(database.dsn, server_settings={"search_path": "retrieval, public"})
    store = await open_store(database.as_role(role_of("retrieval"), PASSWORD), pool_size=1, wait_s=5)
    try:
        for tenant, count, every in (("globex", 4_000, 4), ("acme", 3_000, 1_000)):
            await add_passages(conn, tenant, "d", count=count, every=every)
        before = await rows_read(store)
        await add_passages(conn, "globex", "e", count=8_000, every=1)
        after = await rows_read(store)
    finally:
        await conn.close()
        await store.close()

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


async def rows_read(store: Store) -> dict[str, int]:
    """Count the rows of each table that acme's search reads."""
    leg = WordsLeg("'tortois'", ["'tortois'"], [1.0], 2.0, 1.0)
    async with PassageTable(store).searching("acme") as search:
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
