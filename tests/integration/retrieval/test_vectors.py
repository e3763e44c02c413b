"""Vectors are written and read as they are: as float32, by pgvector's own codec."""

from __future__ import annotations

from typing import Any

import asyncpg
import numpy as np
import pytest
from pgvector import Vector

from wayline.retrieval.embeddings.embedding import LexicalHash
from wayline.retrieval.postgres import open_store
from wayline.store import Store
from wayline.testkit import Platform


@pytest.fixture
async def store(platform: Platform) -> Any:
    store = await open_store(await platform.migrate("retrieval"), pool_size=2, wait_s=0)
    yield store
    await store.close()


async def round_trip(store: Store, vector: Any) -> Any:
    return await store.fetchval("acme", "SELECT $1::vector", vector)


async def test_an_array_comes_back_with_the_same_floats(store: Store):
    written = np.random.default_rng(7).standard_normal(1536).astype(np.float32)

    read = await round_trip(store, written)

    assert isinstance(read, Vector)
    assert np.array_equal(read.to_numpy(), written)


async def test_float64_and_strided_arrays_are_stored_as_float32(store: Store):
    doubles = np.linspace(-1, 1, 8)
    every_second = np.arange(8, dtype=np.float32)[::2]

    assert np.array_equal((await round_trip(store, doubles)).to_numpy(), doubles.astype(np.float32))
    assert (await round_trip(store, every_second)).to_list() == [0, 2, 4, 6]


async def test_a_missing_vector_is_null(store: Store):
    assert await round_trip(store, None) is None


async def test_postgres_reads_the_numbers_that_were_written(store: Store):
    vector = np.array([0.5, -2.0, 3.25], np.float32)

    text = await store.fetchval("acme", "SELECT ($1::vector)::text", vector)

    assert text == "[0.5,-2,3.25]"


async def test_a_stored_passage_has_the_embedding_of_its_text(service: Any, client: Any, store: Store):
    await client.ingest("d1", "The zebra crosses the river.")

    row = await store.fetchrow(
        "acme", "SELECT text, held.embedding, held.dimensions FROM chunks JOIN chunk_vectors AS held USING (chunk_id)"
    )

    assert row is not None
    assert row["dimensions"] == row["embedding"].dimensions() == 384
    [expected] = LexicalHash().vectors([f"d1\n{row['text']}"])
    assert np.allclose(row["embedding"].to_numpy(), expected)


async def test_a_vector_that_is_no_row_of_numbers_is_refused(store: Store):
    with pytest.raises(asyncpg.DataError):
        await round_trip(store, np.zeros((2, 2), np.float32))
