"""The words of a text, cut so that their forms are alike: enough to see which sentences a question's words are in."""

from __future__ import annotations

import re
import unicodedata

from wayline.llm.question_words import asking_pairs, small_words

WORD = re.compile(r"\w+(?:[.'’-]\w+)*")  # noqa: RUF001
UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]+")
"""Runs of scripts whose words are not parted, or not from their endings."""
CUT_LETTERS = 5
"""Where words are not stemmed by rules: their first letters, which forms of a word mostly have in common."""

_PARTS = re.compile(r"[.'’-]")  # noqa: RUF001
_ENDINGS = re.compile(r"[\u3040-\u309f]{2}")
_ARTICLES = re.compile(r"^(?:وال|بال|كال|فال|ال|لل)(?=..)")
_ARABIC = str.maketrans("أإآىة", "اااىه")


def stems_of(text: str, *, language: str) -> frozenset[str]:
    """Return the stems of the words that say something: by rules in English, else their first letters.

    Of scripts without spaces these are pairs of characters, as the index has them.
    """
    found: set[str] = set()
    found.update(pair for run in UNSPACED.findall(text) for pair in _pairs(run))
    for word in WORD.findall(UNSPACED.sub(" ", text)):
        if language == "en":
            found.update(_english(word))
            continue
        parts = [part for part in _PARTS.split(word) if len(part) > 1 and not is_small(part, language=language)]
        found.update(_cut(part) for part in parts)
    return frozenset(found)


def is_small(word: str, *, language: str) -> bool:
    """Return whether a word is only grammar."""
    return word.lower() in small_words(language)


def _english(word: str) -> list[str]:
    lowered = word.lower().replace("’", "'").removesuffix("'s")  # noqa: RUF001
    return [] if len(lowered) < 2 or is_small(lowered, language="en") else [_stem(lowered)]


def _pairs(run: str) -> list[str]:
    pairs = [run[at : at + 2] for at in range(len(run) - 1)] or [run]
    return [pair for pair in pairs if pair not in asking_pairs() and not _ENDINGS.fullmatch(pair)]


def _cut(word: str) -> str:
    plain = "".join(one for one in unicodedata.normalize("NFKD", word.lower()) if not unicodedata.combining(one))
    return _ARTICLES.sub("", plain.translate(_ARABIC))[:CUT_LETTERS]


def _stem(word: str) -> str:
    for ending in ("ations", "ation", "ings", "ing", "edly", "ies", "ers", "er", "ed", "es", "ly", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
