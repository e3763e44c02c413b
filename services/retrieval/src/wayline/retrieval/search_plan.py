"""How passages are searched: the legs of one search, and the statements that run it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from wayline.contracts.knowledge import Filter
from wayline.retrieval.ranking import Term, Words
from wayline.store import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Corpus:
    """How much of a tenant's knowledge was embedded with one model."""

    embedding_model: str
    dimensions: int
    chunks: int
    words: int


@dataclass(frozen=True, slots=True)
class WordsLeg:
    """Rank what matches by BM25."""

    match: str | None
    """None: what postings chose is all that is ranked."""
    terms: Sequence[str]
    weights: Sequence[float]
    average_words: float
    weight: float
    chosen: Chosen | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """Passages that postings chose, and where else a word of the query may be."""

    chunk_ids: Sequence[str]
    fresh: Sequence[str]
    """Documents in no segment yet."""
    fresh_match: str


@dataclass(frozen=True, slots=True)
class VectorLeg:
    """Rank by cosine to the query's vector."""

    vector: NDArray[Any]
    embedding_model: str
    similarity_min: float
    weight: float


class Search(Protocol):
    """The statements of one search."""

    async def corpora(self) -> list[Corpus]: ...

    async def terms(self, query: str) -> list[Term]: ...

    async def choose(self, words: Words, *, count: int) -> Chosen | None: ...

    async def best(
        self,
        words: WordsLeg | None,
        vector: VectorLeg | None,
        *,
        where: Filter,
        candidates: int,
        top_k: int,
        min_score: float | None,
    ) -> list[Record]: ...


class Passages(Protocol):
    """The table of passages, as searching needs it."""

    def searching(self, tenant: str) -> AbstractAsyncContextManager[Search]: ...
