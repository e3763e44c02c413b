"""What can be counted in a task's text that tells how hard it is. Pure; the words are data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise
from math import log, log1p
from zlib import crc32

READ_MAX_CHARS = 8_000
"""Of a longer text the beginning and the end are read: that is where what to do is said."""
FEW_GRAMS = 100
"""Fewer hashed words than this say little, whatever they are."""

_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*(?:\+\+|#)?|\d[\d,.]*")
_SENTENCE_END = re.compile(r"[.!?;]\s|\n")

Lexicons = Mapping[str, Sequence[str]]
"""The names of the features that a word is a sign of."""
Phrases = Mapping[str, re.Pattern[str]]


def excerpt(text: str) -> str:
    """The part of a text that is read."""
    if len(text) <= READ_MAX_CHARS:
        return text
    return f"{text[: READ_MAX_CHARS // 2]}\n{text[-READ_MAX_CHARS // 2 :]}"


def any_of(phrases: Iterable[str]) -> re.Pattern[str]:
    """Finds phrases where a word begins, in any case."""
    return re.compile("|".join(rf"(?<!\w){re.escape(phrase)}" for phrase in phrases), re.IGNORECASE)


def words_of(text: str) -> list[str]:
    """Its words in lower case; every number is the same word."""
    return ["#" if word[0].isdigit() else word for word in _WORD.findall(text.lower().replace("\u2019", "'"))]


def lexicon(lists: Mapping[str, str]) -> Lexicons:
    """Lists of words by feature, turned around: features by word."""
    signs: dict[str, list[str]] = {}
    for name, words in lists.items():
        for word in words.split():
            signs.setdefault(word, []).append(name)
    return signs


def count(text: str, words: Sequence[str], lexicons: Lexicons, phrases: Phrases) -> dict[str, float]:
    """Every feature that occurs, by name: logarithms of counts, so that the tenth sign says less than the first."""
    found = Counter(name for word in words if word in lexicons for name in lexicons[word])
    for name, phrase in phrases.items():
        found[name] += len(phrase.findall(text))
    return {name: log1p(n) for name, n in found.items()} | {
        "words": log1p(len(words)),
        "sentences": log(1 + len(_SENTENCE_END.findall(text.strip()))),
        "numbers": log1p(words.count("#")),
    }


def grams(words: Sequence[str], bits: int) -> set[int]:
    """Its words and pairs of words, hashed: what is left of the vocabulary when no list of words is kept."""
    mask = (1 << bits) - 1
    pairs = map(" ".join, pairwise(words))
    return {crc32(gram.encode()) & mask for gram in chain(words, pairs)}


def gram_share(n: int) -> float:
    """What one of so many hashed words counts: a long text says no more than a short one, and three words little."""
    return (n + FEW_GRAMS) ** -0.5


def gram_sum(found: set[int], weights: Sequence[int]) -> float:
    """What the hashed words of a text add up to."""
    return sum(weights[i] for i in found) * gram_share(len(found))
