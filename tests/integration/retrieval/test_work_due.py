"""One statement tells which parts of retrieval have work that no message tells of."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from wayline.retrieval.postgres import open_store
from wayline.store import Store
from wayline.testkit import Database
from wayline.testkit.databases import PASSWORD, role_of

LOST_AFTER_S = 60.0
PENDING = "INSERT INTO pending_vectors (tenant, set_id, document_id, sequence, claimed_until)"
WORK = {
    "counts": [
        "INSERT INTO count_changes (tenant, embedding_model, dimensions, chunks, words, terms,"
        " term_chunks, terms_count) VALUES ('acme', 'm', 3, 1, 0, '{}', '{}', 0)",
    ],
    "payments": [
        "INSERT INTO embedding_calls (tenant, charge_id, model, state) VALUES ('acme', 'c1', 'm', 'answered')",
        "INSERT INTO embedding_calls (tenant, charge_id, model, at)"
        " VALUES ('acme', 'c2', 'm', now() - interval '2 min')",
    ],
    "vectors": [
        f"{PENDING} VALUES ('acme', 1, 'd1', 1, '-infinity')",
        "INSERT INTO vector_sets (tenant, model, state) VALUES ('acme', 'm', 'building')",
        "INSERT INTO vector_sets (tenant, model, state) VALUES ('acme', 'm', 'shadow')",
    ],
}
NO_WORK = [
    "INSERT INTO embedding_calls (tenant, charge_id, model) VALUES ('acme', 'c3', 'm')",
    f"{PENDING} VALUES ('acme', 2, 'd2', 1, now() + interval '1 min')",
    "INSERT INTO vector_sets (tenant, model, state, automatic) VALUES ('acme', 'm', 'shadow', false)",
    "INSERT INTO vector_sets (tenant, model, state) VALUES ('acme', 'm', 'live')",
]


@pytest_asyncio.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    store = await open_store(database.as_role(role_of("retrieval"), PASSWORD), pool_size=2, wait_s=0)
    yield store
    await store.close()


async def due(store: Store) -> list[str]:
    return await store.true_columns(store.sql.work_due, LOST_AFTER_S)


async def test_parts_whose_work_is_claimed_or_done_have_none(store: Store):
    for statement in NO_WORK:
        await store.execute("acme", statement)

    assert await due(store) == []


@pytest.mark.parametrize(
    ("part", "statement"), [(part, statement) for part, statements in WORK.items() for statement in statements]
)
async def test_a_row_that_is_work_for_a_part_names_it(store: Store, part: str, statement: str):
    await store.execute("acme", statement)

    assert await due(store) == [part]
