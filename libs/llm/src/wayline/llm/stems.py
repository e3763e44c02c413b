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
_ENGLISH_ENDINGS = "ations ation ings ing edly ies ers er ors or ed es ly s e y".split()
_DOUBLED = re.compile(r"([bdgklmnprt])\1$")
_ENDINGS = re.compile(r"[\u3040-\u309f][\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|.[はがをにでのもとへや]")
"""Pairs of Japanese that end a word, or stand between two."""
_BETWEEN = re.compile("[的是谁吗吧呢了着和与]|多少|什么|几")
"""What stands between words of Chinese."""
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
    runs = [part for part in _BETWEEN.split(run) if len(part) > 1] or [run]
    pairs = [part[at : at + 2] for part in runs for at in range(len(part) - 1)] or [run]
    return [pair for pair in pairs if pair not in asking_pairs() and not _ENDINGS.fullmatch(pair)]


def _cut(word: str) -> str:
    plain = "".join(one for one in unicodedata.normalize("NFKD", word.lower()) if not unicodedata.combining(one))
    return _ARTICLES.sub("", plain.translate(_ARABIC))[:CUT_LETTERS]


def _stem(word: str) -> str:
    """Return a word without its ending: of `rinse`, `rinses` and `rinsed` the same."""
    ending = next((one for one in _ENGLISH_ENDINGS if word.endswith(one) and len(word) - len(one) >= 3), "")
    return _DOUBLED.sub(r"\1", word.removesuffix(ending)).removesuffix("e")
