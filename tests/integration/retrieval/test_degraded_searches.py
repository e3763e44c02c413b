"""A search whose query cannot be embedded is answered by words, and says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from wayline.chassis import Service
from wayline.simulator import Asked, Fault, Simulator
from wayline.simulator.models import Facts, Rates
from wayline.telemetry import metrics
from wayline.testkit import until

MODEL = "local-embedding"


class Provider:
    """A provider of embeddings that fails as the test says, and notes what it was asked."""

    def __init__(self) -> None:
        self.fault = Fault()
        self.asked: list[str] = []

    def __call__(self, asked: Asked) -> Fault:
        self.asked += [turn.text for turn in asked.turns]
        return self.fault


@pytest.fixture
async def provider() -> Provider:
    return Provider()


@pytest.fixture
async def service(start: Any, client: Any, provider: Provider) -> AsyncIterator[Service]:
    models = {MODEL: Facts(name=MODEL, provider="local", rates=Rates(), dimensions=8)}
    async with Simulator(faults=provider, models=models) as simulator:
        service = await start(embedding_model=MODEL, embedding_base_url=simulator.openai_url, query_embedding_max_s=0.2)
        await client.ingest("d1", "The tortoise wins the race.")
        provider.asked.clear()
        yield service


def degraded(reason: str) -> float:
    return metrics.searches_degraded.labels("vectors", reason)._value.get()


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
async def test_words_answer_while_the_provider_refuses(service: Service, client: Any, provider: Provider, mode: str):
    before = degraded("provider")
    provider.fault = Fault(error="rate_limited", retry_after_s=60)

    found = await client.search("tortoise", mode=mode)
    again = await client.search("race", mode=mode)

    assert [hit.document_id for hit in (*found.hits, *again.hits)] == ["d1", "d1"]
    assert found.degraded == again.degraded
    assert (found.degraded[0].reason, found.embedding_model) == ("provider", None)
    assert "answered 429" in found.degraded[0].detail
    assert degraded("provider") == before + 2
    # It asked to be left alone for a minute.
    assert provider.asked == ["tortoise"]


async def test_a_late_vector_is_used_by_the_next_search(service: Service, client: Any, provider: Provider):
    held = asyncio.Event()
    provider.fault = Fault(hold=held)

    slow = await client.search("tortoise")
    held.set()

    async def whole() -> bool:
        return not (await client.search("tortoise")).degraded

    assert ([hit.document_id for hit in slow.hits], slow.degraded[0].reason) == (["d1"], "slow")
    await until(whole, why="the vector that came late is used")
    assert provider.asked == ["tortoise"]


async def test_a_query_is_embedded_once_for_each_tenant(service: Service, client: Any, provider: Provider):
    await client.ingest("d1", "The hare sleeps.", tenant="globex")
    provider.asked.clear()

    for tenant in ("acme", "acme", "globex", "acme"):
        assert (await client.search("tortoise", tenant=tenant)).degraded == ()

    assert provider.asked == ["tortoise", "tortoise"]
