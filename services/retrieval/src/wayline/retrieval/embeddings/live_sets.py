"""The set of vectors that a tenant's searches read, and the embedder that makes vectors to compare with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from wayline.retrieval.embeddings.embedding import Embedder

EmbedderOf: TypeAlias = Callable[[str, int | None], Embedder]
"""Returns the embedder of a model, with the number of dimensions that it is asked for."""


@dataclass(frozen=True, slots=True)
class LiveSet:
    """All of a tenant's passages, embedded by one model."""

    set_id: int
    model: str
    asked_dimensions: int | None
    """None: what the model gives."""
    dimensions: int | None
    """None until the first vector."""
    waiting: int = 0
    """Documents, counted up to a hundred, whose passages do not all have vectors yet."""


def only(embedder: Embedder) -> EmbedderOf:
    """Return what knows one embedder."""
    return lambda model, asked_dimensions: embedder
