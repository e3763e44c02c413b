"""Vectors of tools are kept within a limit, so that few texts are embedded, and paid for, twice."""

from __future__ import annotations

from base64 import b64encode

import numpy as np
import pytest

from wayline.contracts.knowledge import EmbeddedTexts, EmbedTexts
from wayline.contracts.tools import ToolDefinition
from wayline.tool_registry.tool_search import Entry, ToolIndex
from wayline.tool_registry.tool_search.tool_embeddings import ToolEmbeddings

TOOLS = 4
VECTOR = np.ones(8, "<f4")
WAIT_S = 60


class Embedder:
    """Makes one vector of every text, and counts the texts of tools."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def __call__(self, ask: EmbedTexts) -> EmbeddedTexts:
        self.texts += [text for text in ask.texts if text != "query"]
        return EmbeddedTexts(model="m", vectors=tuple(b64encode(VECTOR.tobytes()).decode() for _ in ask.texts))

    def taken(self) -> int:
        """Return how many texts there were since it was asked last."""
        texts, self.texts = self.texts, []
        return len(texts)


@pytest.fixture
def embedder() -> Embedder:
    return Embedder()


def keeping(embedder: Embedder, tools: int) -> ToolEmbeddings:
    """Return embeddings with room for so many tools."""
    return ToolEmbeddings(embedder, wait_s=WAIT_S, kept_max_bytes=tools * VECTOR.nbytes)


def index_of(tenant: str, tools: int = TOOLS) -> ToolIndex:
    return ToolIndex([Entry(ToolDefinition(name=f"{tenant}__do", description=f"{tenant} {n}")) for n in range(tools)])


async def test_a_tenant_that_searches_often_keeps_its_vectors(embedder: Embedder):
    vectors = keeping(embedder, 2 * TOOLS)
    await vectors.similar("often", "query", index_of("often"))
    for other in ("b", "c", "d"):
        await vectors.similar(other, "query", index_of(other))
        embedder.taken()
        await vectors.similar("often", "query", index_of("often"))

        assert embedder.taken() == 0


async def test_more_tools_than_fit_are_not_embedded_twice(embedder: Embedder):
    vectors = keeping(embedder, TOOLS)
    many = index_of("a", TOOLS + 3)

    first = await vectors.similar("a", "query", many)
    embedded = embedder.taken()
    again = await vectors.similar("a", "query", many)

    assert (embedded, embedder.taken()) == (TOOLS, 0)
    # The others are found by their words.
    assert list(first) == list(again) == list(range(TOOLS))


async def test_tenants_with_the_same_tools_share_their_vectors(embedder: Embedder):
    vectors = keeping(embedder, TOOLS)

    for tenant in ("a", "b"):
        await vectors.similar(tenant, "query", index_of("same"))

    assert embedder.taken() == TOOLS
