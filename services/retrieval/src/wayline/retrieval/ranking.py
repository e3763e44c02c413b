"""Decide which of a query's words choose the candidates and how much each word counts.

BM25, with the words of the query weighed by how rare they are. A common word counts like any other, but it need not
choose candidates: what matches nothing but the commonest word of a query is never among the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

K1 = 1.5
B = 0.75
RRF_K = 60
TERMS_MAX = 64
"""Of a longer query only the rarest words count."""


@dataclass(frozen=True, slots=True)
class Term:
    """A word of the query as the index knows it: how often it is asked for, and in how many chunks it is."""

    word: str
    chunks: int
    times: int = 1


@dataclass(frozen=True, slots=True)
class Words:
    """The keyword side of a search: what a candidate must match, and the weight of each word in it."""

    any_of: str
    all_of: str | None
    terms: tuple[str, ...]
    weights: tuple[float, ...]


def choose_words(found: Sequence[Term], *, chunks: int, candidates: int) -> Words | None:
    """Plan the keyword side so that about `candidates` chunks are ranked; None when no word is in any chunk.

    `all_of` is set where even the rarest word has more: then ask for all words first.
    """
    known = sorted((term for term in found if term.chunks > 0), key=lambda term: (term.chunks, term.word))[:TERMS_MAX]
    if not known:
        return None
    choosing, matched = [known[0]], known[0].chunks
    for term in known[1:]:
        if matched + term.chunks > candidates:
            break
        choosing.append(term)
        matched += term.chunks
    crowded = known[0].chunks > candidates and len(known) > 1
    return Words(
        any_of=" | ".join(quoted(term.word) for term in choosing),
        all_of=" & ".join(quoted(term.word) for term in known) if crowded else None,
        terms=tuple(quoted(term.word) for term in known),
        weights=tuple(term.times * rarity(term.chunks, of=chunks) for term in known),
    )


def rarity(chunks: int, *, of: int) -> float:
    """BM25's weight of a word that is in so many chunks of all."""
    total = max(of, chunks)
    return log(1 + (total - chunks + 0.5) / (chunks + 0.5))


def quoted(word: str) -> str:
    """A word as a tsquery that means exactly this word."""
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"
