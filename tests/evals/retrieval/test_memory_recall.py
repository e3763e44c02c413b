"""Memory finds the turns of long conversations that answer a question, better than the best known library."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from tests.bench import memory as bench
from wayline.retrieval import app
from wayline.retrieval.postgres import open_store
from wayline.retrieval.settings import LEXICAL_MODEL, ON_BOARD_MODEL
from wayline.store import Store, migrate
from wayline.testkit import Database

from ..shared import needed

ABOVE_BM25S = 0.015
"""By how much memory is at least better than bm25s, even where that has the same words."""


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    await migrate(
        database.dsn, schema="retrieval", role="eval", password="eval", directory=app.migrations(), vector=True
    )
    store = await open_store(database.as_role("eval", "eval"), pool_size=4, wait_s=5)
    yield store
    await store.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("model", [LEXICAL_MODEL, ON_BOARD_MODEL])
async def test_memory_finds_more_turns_with_the_answer_than_bm25s(
    store: Store, tell: Callable[[str], None], model: str
):
    found = await bench.measure_recall(bench.Memory.of(store, model, tenant="eval"), needed(bench.SET))
    tell(f"{bench.SET} with {model}: {found}, bm25s {bench.BM25S}, on the same words {bench.BM25S_SAME_WORDS}")

    for floor in (bench.BM25S, bench.BM25S_SAME_WORDS):
        assert found.ndcg >= floor.ndcg + ABOVE_BM25S
        assert found.recall >= floor.recall + ABOVE_BM25S
