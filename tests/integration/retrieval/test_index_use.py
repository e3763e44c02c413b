"""Row-level security keeps no index from near words and filters: else each search looks through all of a tenant."""

from collections.abc import AsyncIterator
from importlib.resources import files
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from wayline.retrieval.postgres import open_store
from wayline.retrieval.search.passage_table import PassageTable
from wayline.retrieval.search.search_plan import Allowed
from wayline.store.queries import Queries
from wayline.testkit import Platform

pytestmark = pytest.mark.asyncio(loop_scope="module")

SQL = Queries.load(files("wayline.retrieval").joinpath("queries.sql"))
NEAR, FILTERED = "Index Cond: (term_deletions(", "Index Cond: (filter_words("
LEAKPROOF = """
    ALTER FUNCTION pg_catalog.ts_match_vq(tsvector, tsquery) {0};
    ALTER FUNCTION filter_words(text, text, jsonb) {0};
"""
MANY = """
    SET wayline.tenant = 'acme';
    INSERT INTO retrieval.terms (tenant, term, chunks)
    SELECT 'acme', translate(to_char(n, 'FM00000'), '0123456789', 'abcdefghij'), 1 FROM generate_series(1, 5000) AS n;
    INSERT INTO retrieval.documents (tenant, document_id, name, media_type, status, metadata)
    SELECT 'acme', 'd' || n, 'page', 'text/plain', 'ready', jsonb_build_object('shelf', n % 100)
    FROM generate_series(1, 5000) AS n;
    ANALYZE retrieval.terms; ANALYZE retrieval.documents;
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tables(module_platform: Platform) -> AsyncIterator[tuple[Any, Any]]:
    """Yield a connection of the owner and one of the service, with many words and documents of a tenant."""
    dsn, path = await module_platform.migrate("retrieval"), {"search_path": "retrieval, public"}
    owner = await asyncpg.connect(module_platform.database.dsn, server_settings=path)
    service = await asyncpg.connect(dsn, server_settings=path)
    await owner.execute(MANY)
    await service.execute("SET wayline.tenant = 'acme'")
    yield owner, service
    await service.close()
    await owner.close()


async def plan(conn: Any, statement: str, *args: Any) -> str:
    return "\n".join(row[0] for row in await conn.fetch(f"EXPLAIN {statement}", *args))


async def test_near_words_and_filters_are_found_by_their_indexes(tables: tuple[Any, Any]):
    owner, service = tables
    near = (SQL.near_terms, "acme", "'acme~abcd' | 'acme~bcde'")
    filtered = (SQL.filtered_documents, "acme", '{"shelf": {"equals": 3}}', None, 100, None, [])

    assert NEAR in await plan(service, *near)
    assert FILTERED in await plan(service, *filtered)

    # What a restored database has lost: row-level security then keeps the indexes from serving.
    await owner.execute(LEAKPROOF.format("NOT LEAKPROOF"))
    try:
        assert NEAR not in await plan(service, *near)
        assert FILTERED not in await plan(service, *filtered)
    finally:
        await owner.execute(LEAKPROOF.format("LEAKPROOF"))


async def test_filters_and_audiences_name_the_documents_that_they_leave(
    tables: tuple[Any, Any], module_platform: Platform
):
    owner, _ = tables
    await owner.execute("UPDATE documents SET audience = '{keepers}' WHERE metadata @> '{\"shelf\": 4}'")
    await owner.execute("UPDATE documents SET audience = '{others}' WHERE metadata @> '{\"shelf\": 5}'")
    store = await open_store(await module_platform.migrate("retrieval"), pool_size=1, wait_s=5)
    try:
        async with PassageTable(store).searching("acme") as search:
            shelf = await search.narrow(Allowed(metadata={"shelf": 3}))
            kept = await search.narrow(Allowed(metadata={"shelf": 4}, names=("keepers",)))
            closed = await search.narrow(Allowed(metadata={"shelf": 5}, names=("keepers",)))
            everybody = await search.narrow(Allowed(names=("keepers",)))
            place = await search.narrow(Allowed(metadata={"page": 3}, names=("others",)))
    finally:
        await store.close()

    assert [len(one.document_ids or ()) for one in (shelf, kept, closed, everybody, place)] == [50, 50, 0, 4950, 4950]
    assert all(one.few and one.looked_up for one in (shelf, kept, closed, everybody))
