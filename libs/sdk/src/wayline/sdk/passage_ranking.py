"""Rank passages by words, by two rankings fused, or by what a model says of the best; pure, apart from asking it."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log

from wayline.contracts.reranking import RERANKED_MAX, chosen_order, read_order, rerank_question

K1, B = 1.4, 0.6
"""BM25 as the knowledge base ranks by it."""

_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3]+")

Ask = Callable[[str], Awaitable[str]]
"""Asks a model a question; it raises what went wrong."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A passage by its key, and how well it fits."""

    key: str
    score: float


@dataclass(frozen=True, slots=True)
class Reranked:
    """The places of the best passages, best first."""

    order: tuple[int, ...]
    """From 0, in the list that was given."""
    reranked: bool
    reason: str | None = None
    """Why the order is the given one."""


def keyword_search(query: str, passages: Mapping[str, str], *, limit: int = 10) -> list[Scored]:
    """Return the passages that hold words of the query, best first by BM25.

    Words end at signs, accents and capitals do not matter, and scripts without spaces are compared by pairs of
    characters. Nothing is stemmed.
    """
    held = {key: Counter(_words(text)) for key, text in passages.items()}
    asked = Counter(_words(query))
    total = len(held)
    average = sum(sum(words.values()) for words in held.values()) / total if total else 1.0
    having = {word: sum(word in words for words in held.values()) for word in asked}
    found = []
    for key, words in held.items():
        norm = K1 * (1 - B + B * sum(words.values()) / max(average, 1.0))
        score = sum(
            times
            * log(1 + (total - having[word] + 0.5) / (having[word] + 0.5))
            * (K1 + 1)
            * words[word]
            / (words[word] + norm)
            for word, times in asked.items()
            if words[word]
        )
        if score > 0:
            found.append(Scored(key, score))
    return sorted(found, key=lambda one: (-one.score, one.key))[:limit]


def reciprocal_rank_fusion(
    vector: Sequence[str], keyword: Sequence[str], k: float = 60, vector_weight: float = 0.5
) -> list[Scored]:
    """Fuse two rankings of keys, each best first: the weight of a ranking over k plus the rank in it, from 1.

    A key that comes twice in a ranking counts where it comes first. Raises ValueError for a k that is not positive and
    for a weight outside of 0 to 1.
    """
    if k <= 0 or not 0 <= vector_weight <= 1:
        raise ValueError("k must be above 0, and vector_weight from 0 to 1")
    scores: dict[str, float] = {}
    for weight, ranking in ((vector_weight, vector), (1 - vector_weight, keyword)):
        for rank, key in enumerate(dict.fromkeys(ranking), start=1):
            scores[key] = scores.get(key, 0.0) + weight / (k + rank)
    return sorted((Scored(key, score) for key, score in scores.items()), key=lambda one: (-one.score, one.key))


async def rerank(query: str, passages: Sequence[str], ask: Ask, *, top: int = 5, within_s: float = 20.0) -> Reranked:
    """Return the places of the passages that a model finds best, of the first twenty.

    Where it cannot be asked, or names a passage that is not there or one twice, the given order stays, and the result
    says why. It is asked once; what it costs is the caller's.
    """
    given = tuple(range(min(top, len(passages))))
    shown = passages[:RERANKED_MAX]
    if len(shown) <= 1:
        return Reranked(given, reranked=False, reason="there is nothing to put in order")
    try:
        answer = await asyncio.wait_for(ask(rerank_question(query, shown, top=top)), within_s)
    except TimeoutError:
        return Reranked(given, reranked=False, reason=f"the model had not answered within {within_s:g} s")
    except Exception as error:  # whatever the caller's model raises, a search has its results
        return Reranked(
            given, reranked=False, reason=f"the model could not be asked: {str(error) or type(error).__name__}"
        )
    chosen = read_order(answer, count=len(shown))
    if isinstance(chosen, str):
        return Reranked(given, reranked=False, reason=chosen)
    return Reranked(chosen_order(chosen, count=len(passages), top=top), reranked=True)


def _words(text: str) -> list[str]:
    folded = "".join(sign for sign in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(sign))
    composed = unicodedata.normalize("NFKC", folded)
    words = _WORD.findall(_UNSPACED.sub(" ", composed))
    for run in _UNSPACED.findall(composed):
        words += [run[at : at + 2] for at in range(max(1, len(run) - 1))]
    return words
