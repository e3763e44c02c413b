"""Decide which of a query's words choose the candidates and how much each word counts.

BM25, with the words of the query weighed by how rare they are. A common word counts like any other, but it need not
choose candidates: what matches nothing but the commonest word of a query is never among the best.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import log

from wayline.retrieval.search.asking_words import SAYING_NOTHING, is_asking

K1 = 1.4
B = 0.6
"""Passages are cut to a like length, so that it says less of them than of whole documents."""
IDENTIFIER_SIGN = "\u01c0"
"""What the index writes in front of an identifier as a whole."""
IDENTIFIER_WEIGHT = 2
"""An identifier that is there as asked weighs more than its parts in another order."""
NEAR_WEIGHT = 0.5
"""A word that is written otherwise by one letter may be another word."""
RRF_K = 60
MISSING_MAX = 0.5
"""The share of a query's weight that no passage may have before its words are distrusted."""
COVERAGE_CHUNKS_MIN = 100
"""Fewer passages say nothing of how rare a word is: a word that none of them has would outweigh all that they have."""
TERMS_MAX = 256
"""Of a longer query only the words that weigh most count: how often each is asked for, times how rare it is."""


@dataclass(frozen=True, slots=True)
class Term:
    """A word of the query as the index knows it: how often it is asked for, and in how many chunks it is."""

    word: str
    chunks: int
    times: int = 1
    place: int | None = None
    """Words of one place are one word of the query, as the tenant's languages stem it."""
    near: bool = False
    """Whether it only looks like the query's word, by one letter."""


@dataclass(frozen=True, slots=True)
class Words:
    """The keyword side of a search: what a candidate must match, and the weight of each word in it."""

    any_of: str
    all_of: str | None
    terms: tuple[str, ...]
    weights: tuple[float, ...]
    words: tuple[str, ...] = ()
    """The terms as the index has them, not quoted."""
    rare: str | None = None
    """Of any_of what is rare; None: even the rarest word is common."""
    complete: bool = True
    """Whether every passage with any of the words is a candidate."""


def choose_words(found: Sequence[Term], *, chunks: int, candidates: int) -> Words | None:
    """Choose the words to search for so that about `candidates` chunks are ranked; None: no word is in any chunk.

    `all_of` is set where even the rarest word has more: then ask for all words first.
    """
    weighing = sorted(
        (term for term in found if term.chunks > 0), key=lambda term: (-weight(term, chunks=chunks), term.word)
    )[:TERMS_MAX]
    if not weighing:
        return None
    known = sorted(weighing, key=lambda term: (term.chunks, term.word))
    choosing, matched = [known[0]], known[0].chunks
    for term in known[1:]:
        if matched + term.chunks > candidates:
            break
        choosing.append(term)
        matched += term.chunks
    crowded = known[0].chunks > candidates
    any_of = " | ".join(quoted(term.word) for term in choosing)
    return Words(
        any_of=any_of,
        all_of=" & ".join(quoted(term.word) for term in known) if crowded and len(known) > 1 else None,
        terms=tuple(quoted(term.word) for term in known),
        weights=tuple(weight(term, chunks=chunks) for term in known),
        words=tuple(term.word for term in known),
        rare=None if crowded else any_of,
        complete=len(choosing) == len(known) and not crowded,
    )


def weight(term: Term, *, chunks: int) -> float:
    """Return what a word of the query counts: how often it is asked for, times how rare it is."""
    factor = IDENTIFIER_WEIGHT if term.word.startswith(IDENTIFIER_SIGN) else NEAR_WEIGHT if term.near else 1
    return factor * term.times * rarity(term.chunks, of=chunks)


def choose_share(found: Sequence[Term], *, chunks: int, known: float, unknown: float) -> float:
    """Return what the vectors are worth in the fusion of one query.

    `known` where passages have most of what its words weigh, `unknown` where they have less than half of it, and all
    where they have none of its words. Of a query of nothing but identifiers, such as an emoji, those are the words.
    """
    missing = missing_share(found, chunks=chunks)
    if missing >= 1:
        return 1.0
    return unknown if missing > MISSING_MAX else known


def missing_share(found: Sequence[Term], *, chunks: int) -> float:
    """Return the share of a query's weight that no passage has; of nothing, all is missing."""
    terms = [term for term in found if not term.word.startswith(IDENTIFIER_SIGN)] or found
    # Of the forms of one word the commonest says whether passages have it.
    words = [max(forms, key=lambda term: term.chunks) for forms in forms_of(terms)]
    total = sum(weight(term, chunks=chunks) for term in words)
    missing = sum(weight(term, chunks=chunks) for term in words if term.chunks <= 0)
    return missing / total if missing < total else 1.0


def coverage(asked: Sequence[Term], held: Collection[str], *, chunks: int) -> float | None:
    """Return the share of a query's words, weighed by how rare they are, that a passage holds; None: it has none.

    `held` are words of the query as `choose_words` quotes them.
    """
    words = forms_of([term for term in asked if not (term.near or term.word.startswith(IDENTIFIER_SIGN))])
    of = max(chunks, COVERAGE_CHUNKS_MIN)
    covered = total = 0.0
    for forms in words:
        there = any(quoted(term.word) in held for term in forms)
        if any(term.word in SAYING_NOTHING or (is_asking(term.word) and not there) for term in forms):
            continue
        weighs = rarity(max(term.chunks for term in forms), of=of)
        total += weighs
        covered += weighs if there else 0
    return covered / total if total > 0 else None


def forms_of(terms: Sequence[Term]) -> list[list[Term]]:
    """Return the terms by the words of the query that they are forms of."""
    forms: dict[int | str, list[Term]] = {}
    for term in terms:
        forms.setdefault(term.word if term.place is None else term.place, []).append(term)
    return list(forms.values())


def most_of(asked: Sequence[Term], *, chunks: int) -> float:
    """Return what a passage would score that had each word of a query very often: those that none has count, too."""
    weights = []
    for forms in forms_of(asked):
        known = [term for term in forms if term.chunks > 0]
        weights.append(max(weight(term, chunks=chunks) for term in known or forms))
    return (K1 + 1) * sum(sorted(weights)[-TERMS_MAX:])


def rarity(chunks: int, *, of: int) -> float:
    """Return BM25's weight of a word that is in so many chunks of all."""
    total = max(of, chunks)
    return log(1 + (total - chunks + 0.5) / (chunks + 0.5))


def quoted(word: str) -> str:
    """Quote a word as a tsquery that means exactly this word."""
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"
