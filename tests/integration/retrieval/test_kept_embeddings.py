"""Embeddings are kept as they come: what was paid for is not asked for again, by the same tenant alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

from wayline.chassis import Service
from wayline.contracts.knowledge import DeleteDocument, DocumentDeleted
from wayline.retrieval.embeddings.kept_embeddings import KeptEmbeddingSweep, KeptEmbeddingTable
from wayline.retrieval.postgres import open_store
from wayline.simulator import Asked, Fault, Simulator
from wayline.simulator.models import Facts, Rates
from wayline.testkit import Platform, until

MODEL = "local-embedding"
BATCH = 4
PASSAGES = [f"Passage {n} tells of the tide number {n}. " + "filler " * 60 for n in range(40)]


class Limited:
    """A provider that answers so many requests, then refuses one, again and again."""

    def __init__(self) -> None:
        self.answered: Counter[str] = Counter()
        self.allowed = 10_000
        self.left = self.allowed

    def allow(self, requests: int) -> None:
        self.allowed = self.left = requests

    def __call__(self, asked: Asked) -> Fault:
        if self.left == 0:
            self.left = self.allowed
            return Fault(error="rate_limited", retry_after_s=0.1)
        self.left -= 1
        self.answered.update(turn.text for turn in asked.turns)
        return Fault()


@pytest.fixture
async def provider() -> AsyncIterator[tuple[Simulator, Limited]]:
    limited = Limited()
    models = {MODEL: Facts(name=MODEL, provider="local", rates=Rates(), dimensions=8)}
    async with Simulator(faults=limited, models=models) as simulator:
        yield simulator, limited


@pytest.fixture
async def limited(provider: tuple[Simulator, Limited]) -> Limited:
    return provider[1]


@pytest.fixture
async def service(start: Any, provider: tuple[Simulator, Limited]) -> Service:
    return await start(
        embedding_model=MODEL, embedding_base_url=provider[0].openai_url, embedding_batch=BATCH, chunk_chars=500
    )


async def test_a_rate_limited_document_is_embedded_once(service: Service, client: Any, limited: Limited):
    limited.allow(3)

    document = await client.ingest("d1", "\n\n".join(PASSAGES))

    async def embedded() -> bool:
        return (await client.get("d1")).chunks_embedded == len(PASSAGES)

    await until(embedded, why="every passage has its vector")
    assert (document.status, document.chunks_done) == ("ready", len(PASSAGES))
    assert len(limited.answered) == len(PASSAGES)
    assert set(limited.answered.values()) == {1}


async def test_a_changed_document_is_embedded_where_it_changed(service: Service, client: Any, limited: Limited):
    await client.ingest("d1", "\n\n".join(PASSAGES))
    limited.answered.clear()

    await client.ingest("d1", "\n\n".join([*PASSAGES[:20], "A new passage. " + "filler " * 60, *PASSAGES[21:]]))

    [asked] = limited.answered
    assert "A new passage." in asked


async def test_another_tenant_with_the_same_text_asks_for_itself(service: Service, client: Any, limited: Limited):
    await client.ingest("d1", PASSAGES[0], tenant="acme")
    await client.ingest("d1", PASSAGES[0], tenant="globex")

    assert list(limited.answered.values()) == [2]


async def test_what_a_deleted_document_had_is_kept_no_longer(service: Service, client: Any, owner: Any):
    await client.ingest("d1", "\n\n".join(PASSAGES[:2]))
    await client.ingest("d1", PASSAGES[0])
    kept = "SELECT count(*) FROM retrieval.kept_embeddings"
    assert await owner(kept) == [(1,)]

    await client.bus.ask(DeleteDocument(tenant="acme", document_id="d1"), DocumentDeleted)

    assert await owner(kept) == [(0,)]


async def test_old_embeddings_and_those_above_a_share_are_forgotten(client: Any, platform: Platform):
    store = await open_store(await platform.migrate("retrieval"), pool_size=2, wait_s=0)
    table, ones = KeptEmbeddingTable(store), np.ones((3, 8), np.float32)
    await table.keep("acme", MODEL, [b"a", b"b", b"c"], ones)
    await table.keep("globex", MODEL, [b"a"], ones[:1])
    await store.execute(
        "acme", "UPDATE kept_embeddings SET used_at = now() - interval '1 hour' WHERE text_sha256 = 'a'"
    )
    await store.execute("acme", "UPDATE kept_embeddings SET used_at = now() - interval '1 min' WHERE text_sha256 = 'b'")
    size = await store.fetchval("acme", "SELECT bytes FROM kept_embeddings LIMIT 1")

    by_age = await KeptEmbeddingSweep(store, unused_max_s=600, per_tenant_max_bytes=10**9).sweep()
    by_size = await KeptEmbeddingSweep(store, unused_max_s=600, per_tenant_max_bytes=size).sweep()

    assert (by_age, by_size) == (1, 1)
    assert set(await table.find("acme", MODEL, [b"a", b"b", b"c"])) == {b"c"}
    assert set(await table.find("globex", MODEL, [b"a"])) == {b"a"}
    await store.close()
