"""A recall embeds what is asked for while it reads the facts of the owner."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from pgvector import Vector

from wayline.contracts.memory import NO_MEMORIES, RecallMemories
from wayline.retrieval.memory.fact_table import FactsToRecall
from wayline.retrieval.memory.fact_vectors import cosines
from wayline.retrieval.memory.recall import Recaller


class ReadFacts:
    """A table that tells when it was asked."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def to_recall(self, *args: Any, **kwargs: Any) -> FactsToRecall:
        self.asked.set()
        return FactsToRecall([], {}, ())


class WaitingVectors:
    """An embedder that answers when the facts are being read."""

    model, weight, similarity_min = "waits", 1.0, 0.0

    def __init__(self, facts: ReadFacts) -> None:
        self.facts = facts

    async def of(self, tenant: str, texts: list[str]) -> tuple[Any, str | None]:
        await asyncio.wait_for(self.facts.asked.wait(), 30)
        return np.ones((len(texts), 2), np.float32), None


async def test_facts_are_read_while_the_query_is_embedded():
    facts: Any = ReadFacts()
    vectors: Any = WaitingVectors(facts)

    found = await Recaller(facts, vectors).memories(RecallMemories(tenant="acme", user_id="ann", search_terms=("sea",)))

    assert (found.facts, found.note, found.degraded) == ((), NO_MEMORIES, None)


def test_a_vector_of_another_length_is_not_compared():
    asked = np.array([[1, 0], [0.6, 0.8]], np.float32)

    assert cosines([Vector([1, 0]), None, Vector([1, 0, 0])], asked) == [[1, 0, 0], pytest.approx([0.6, 0, 0])]
    assert cosines([Vector([1, 0])], None) == []
