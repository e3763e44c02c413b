"""One tenant's documents are nobody else's, whatever they are called."""

from typing import Any

import asyncpg

from wayline.chassis import Service
from wayline.contracts.knowledge import DeleteDocument, DocumentDeleted, Filter
from wayline.store import rls_gaps
from wayline.testkit import Platform


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
        assert {row["table_name"] for row in tables} == {
            "documents",
            "originals",
            "chunks",
            "terms",
            "corpora",
            "count_changes",
            "embedding_calls",
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
