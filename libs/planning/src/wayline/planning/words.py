# ruff: noqa: RUF001 - words and signs of other scripts
"""Texts as words that can be compared: in any script, without endings, weighed by how rare they are."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

_ONE_BY_ONE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Scripts without spaces between words, and Hangul, whose words carry particles: each character is a word."""
_WORD = re.compile(rf"[{_ONE_BY_ONE}]|(?:(?![{_ONE_BY_ONE}])[^\W_])+(?:['’./-](?:(?![{_ONE_BY_ONE}])[^\W_])+)*")
_ENDINGS = ("ations", "ation", "ings", "ing", "ments", "ment", "edly", "ies", "ers", "ed", "en", "er", "es", "s", "e")
STEM_MIN_CHARS = 3
STEMS_KEPT_MAX = 16_384

COMMON = frozenset(
    """
    a all also an and any are as at be been being but by can could do does each every for from get got had has have how
    i if in into is it its just may must my no not of on or our out shall should so some such take than that the their
    them then there these they this those to up us use using was we were what when where which while who will with
    would you your ready done finished complete completed step task tasks steps item work
    der die das den dem des ein eine einen einer und oder ist sind wird werden mit für von zu zum zur im in am auf aus
    bei als auch alle aufgabe schritt fertig erledigt le la les un une des du de et ou est sont pour par dans sur avec
    au aux en tâche étape terminé el los las una unos y o es son para por con sin del al tarea paso terminado il lo gli
    i per nel della delle di attività passo completato o a os as um uma e do da dos das tarefa etapa concluído
    и в на с по для из к у о от не это как задача шаг готово готова готов
    """.split()
)
"""Words that tell no task from another."""


class Token(NamedTuple):
    """A word of a text and where it stands."""

    text: str
    """Folded: without case, accents and width."""
    start: int
    end: int


def words(text: str) -> list[Token]:
    """Return the words of a text in their order."""
    return [Token(folded(found[0]), found.start(), found.end()) for found in _WORD.finditer(text)]


@lru_cache(maxsize=STEMS_KEPT_MAX)
def folded(word: str) -> str:
    """Return a word without case, accents and width."""
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return unicodedata.normalize("NFC", "".join(one for one in decomposed if not unicodedata.combining(one)))


@lru_cache(maxsize=STEMS_KEPT_MAX)
def stem(word: str) -> str:
    """Return a folded word without its ending: `booked`, `booking` and `books` are `book`."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= STEM_MIN_CHARS:
            word = word[: -len(ending)]
            break
    doubled = len(word) > STEM_MIN_CHARS and word[-1] == word[-2] and word[-1] not in "ls"
    return word[:-1] if doubled else word


COMMON_FOLDED = frozenset(folded(word) for word in COMMON)


def telling(found: Iterable[Token]) -> list[str]:
    """Return the stems of the words that say something, in their order."""
    return [stem(word.text) for word in found if word.text not in COMMON_FOLDED and not word.text.isdigit()]


def rarity(texts: Iterable[Iterable[str]]) -> Mapping[str, float]:
    """Return how much each stem tells: the more, the fewer of the texts hold it."""
    counted: Counter[str] = Counter()
    number = 0
    for text in texts:
        counted.update(set(text))
        number += 1
    return {word: math.log(1 + number / held) for word, held in counted.items()}
