"""The last queries' vectors are remembered within a bound of bytes, and a silent provider is left alone for a while."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wayline.contracts.errors import Retry
from wayline.contracts.knowledge import Degraded
from wayline.retrieval.embeddings.embed_queries import ENTRY_BYTES, QueryEmbedder
from wayline.retrieval.embeddings.embed_texts import Embedded, TextEmbedder
from wayline.telemetry import Telemetry


class Counting:
    """An embedder that notes what it was asked, and may be away."""

    model = kept = "m"
    provider = "test"
    vector_weight = vector_weight_unknown = 0.5
    similarity_min = -1.0

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.away = False

    async def embed(self, texts: Sequence[str], *, payer: Any = None) -> Any:
        self.asked += texts
        if self.away:
            raise Retry("away", after_s=7)
        return np.ones((len(texts), 4), np.float32)

    def batches(self, texts: Sequence[str]) -> list[Sequence[str]]:
        return [texts]

    async def close(self) -> None:
        pass


def queries(embedder: Counting, *, entries: int = 10, clock: Any = lambda: 0.0) -> QueryEmbedder:
    size = 16 + 1 + ENTRY_BYTES
    texts = TextEmbedder(embedder, Telemetry("test"))
    return QueryEmbedder(texts, within_s=5, remembered_max_bytes=entries * size, clock=clock)


async def test_the_least_recently_asked_query_is_forgotten_first():
    embedder = Counting()
    asking = queries(embedder, entries=2)

    for query in ("a", "b", "a", "c", "a", "b"):
        assert isinstance(await asking.embed("acme", query, None), Embedded)

    assert embedder.asked == ["a", "b", "c", "b"]


async def test_a_provider_that_is_away_is_asked_again_when_it_said():
    embedder, now = Counting(), [0.0]
    asking = queries(embedder, clock=lambda: now[0])
    embedder.away = True
    assert isinstance(await asking.embed("acme", "a", None), Degraded)
    embedder.away = False

    now[0] = 6.9
    assert isinstance(await asking.embed("acme", "a", None), Degraded)
    now[0] = 7.1
    assert isinstance(await asking.embed("acme", "a", None), Embedded)

    assert embedder.asked == ["a", "a"]
