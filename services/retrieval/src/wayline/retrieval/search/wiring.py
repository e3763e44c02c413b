"""What search is made of, and what it hears."""

from __future__ import annotations

from typing import Any

from wayline.chassis import Ask, asks
from wayline.contracts.knowledge import EmbedTexts, SearchKnowledge
from wayline.retrieval.embeddings.embed_queries import QueryEmbedder
from wayline.retrieval.embeddings.embed_texts import TextEmbedder
from wayline.retrieval.embeddings.live_sets import EmbedderOf
from wayline.retrieval.search.search_passages import Searcher
from wayline.retrieval.settings import Settings


def search_asks(searcher: Searcher, *, slots: int) -> list[Ask[Any]]:
    """Return the requests for passages and vectors, bound to what answers them."""
    return [
        asks(SearchKnowledge, searcher.search, slots=slots),
        asks(EmbedTexts, searcher.embed, slots=slots),
    ]


def query_embedder(settings: Settings, texts: TextEmbedder, *, embedder_of: EmbedderOf | None = None) -> QueryEmbedder:
    """Make what embeds queries within the settings' bounds."""
    return QueryEmbedder(
        texts,
        within_s=settings.query_embedding_max_s,
        remembered_max_bytes=settings.query_vectors_max_bytes,
        embedder_of=embedder_of,
    )
