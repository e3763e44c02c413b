"""How passages are searched: the legs of one search, and the statements that run it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from wayline.retrieval.embeddings.live_sets import LiveSet
from wayline.retrieval.search.ranking import Term, Words
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
    most: float = 1.0
    """What a passage would score in which every word is very often."""
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
    set_id: int
    similarity_min: float
    weight: float
    exact: bool = False
    """Whether to look at each vector and not at the index of them."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Which passages a search may find."""

    document_ids: tuple[str, ...] | None = None
    """None: of any document."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Pairs that are equal in the passage."""
    where: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Conditions on the document's metadata, by key."""
    collections: tuple[str, ...] | None = None
    names: tuple[str, ...] = ()
    """On whose behalf."""
    match: str | None = None
    """A tsquery that the passage's words must match."""
    looked_up: bool = False
    """Whether document_ids name all that the filter and the audience allow, so that neither is looked up again."""
    few: bool = False
    """Whether document_ids name so few passages that each can be looked at."""


class Search(Protocol):
    """The statements of one search."""

    async def corpora(self) -> list[Corpus]: ...

    async def terms(self, query: str) -> list[Term]: ...

    async def narrow(self, allowed: Allowed) -> Allowed: ...

    async def demands(self, phrases: Sequence[str], excluded: Sequence[str]) -> tuple[str | None, str | None]: ...

    async def near_terms(self, word: str) -> list[Term]: ...

    async def terms_that_begin(self, beginning: str) -> list[Term]: ...

    async def choose(self, words: Words, *, count: int) -> Chosen | None: ...

    async def best(
        self,
        words: WordsLeg | None,
        vector: VectorLeg | None,
        *,
        allowed: Allowed,
        candidates: int,
        top_k: int,
        min_score: float | None,
    ) -> list[Record]: ...


class Passages(Protocol):
    """The table of passages, as searching needs it."""

    async def live_set(self, tenant: str) -> LiveSet | None: ...

    def note_query(self, tenant: str, query: str) -> None: ...

    def searching(self, tenant: str) -> AbstractAsyncContextManager[Search]: ...
