"""What a question's words say in nine languages: what an answer has to have, and which words are only grammar.

The words and patterns of each language are in question_words.toml.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

Kind = Literal["number", "time"]
COUNTED_WITHIN_WORDS = 3
"""What is counted is one of so many words behind its number: `three large, old houses`."""
_MEASURES = frozenset(
    """
    times mal fois veces раз مرة time zeit temps tiempo времени عدد رسوم اشتراك مدة وقت طول عرض ارتفاع وزن عمر مساحة
    """.split()
)
"""What has a number and does not stand behind it."""
_HAN = "[一二三四五六七八九十百千万两半]"
_KOREAN = r"(?:(?<=\s)|^)(?:만|천|백|십|한|두|세|네|일|이|삼|사|오|육|칠|팔|구|스물)(?=[\s십백천만])"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an answer to a question has to have."""

    kind: Kind | None = None
    unit: re.Pattern[str] | None = None
    counted: str | None = None
    """What of which the number is asked for: `jars` of "how many jars"."""
    chosen: str | None = None
    """What one of is asked for: `line` of "which line"."""
    whether: bool = False
    """Whether it asks if something is so."""
    counter: str | None = None
    """In Chinese, Japanese and Korean, the sign that follows the number."""


def wanted_of(question: str) -> Wanted:
    """Return what an answer to a question has to have."""
    known, lowered = _known(), question.lower()
    kind: Kind | None = "time" if known.time.search(lowered) else "number" if known.number.search(lowered) else None
    counted = _first(known.counted, lowered)
    return Wanted(
        kind,
        next((has for asks, has in known.units if asks.search(lowered)), None),
        None if counted in _MEASURES else counted,
        _first(known.chosen, lowered),
        kind is None and known.whether.search(lowered.strip()) is not None,
        _first(known.counter, lowered),
    )


def may_answer(text: str, wanted: Wanted, *, stem: Callable[[str], frozenset[str]]) -> bool:
    """Return whether a text has what an answer needs. What is free of charge answers how much it is."""
    known, lowered = _known(), text.lower()
    if wanted.unit is not None and not wanted.unit.search(lowered):
        return False
    if wanted.chosen is not None and not stem(wanted.chosen) <= stem(lowered):
        return False
    if wanted.counted is not None:
        return _is_counted(lowered, stem(wanted.counted), stem)
    if wanted.counter is not None and wanted.kind is not None:
        return re.search(rf"(?:\d|{_HAN}|\w\s?){re.escape(wanted.counter)}", lowered) is not None
    if wanted.kind is None or known.has_number.search(lowered):
        return True
    return wanted.kind == "time" and known.has_time.search(lowered) is not None


def language_of(question: str) -> str:
    """Return which language's small words a question has most of; `en` where nothing tells."""
    words = re.findall(r"[^\W\d_]+", question.lower())
    counts = {language: sum(word in small for word in words) for language, small in _known().small.items()}
    best = max(counts, key=lambda language: counts[language])
    return best if counts[best] > counts["en"] else "en"


def small_words(language: str) -> frozenset[str]:
    """Return the words of a language that are only grammar."""
    return _known().small[language]


def asking_pairs() -> frozenset[str]:
    """Return the pairs of characters that ask, in scripts without spaces."""
    return _known().pairs


@dataclass(frozen=True, slots=True)
class _Known:
    small: dict[str, frozenset[str]]
    pairs: frozenset[str]
    time: re.Pattern[str]
    number: re.Pattern[str]
    whether: re.Pattern[str]
    counted: re.Pattern[str]
    counter: re.Pattern[str]
    chosen: re.Pattern[str]
    units: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]
    has_number: re.Pattern[str]
    has_time: re.Pattern[str]


@cache
def _known() -> _Known:
    told: dict[str, Any] = tomllib.loads(
        files("wayline.llm").joinpath("question_words.toml").read_text(encoding="utf-8")
    )
    numbers, times = ("|".join(told["answers"][name].split()) for name in ("numbers", "times"))
    return _Known(
        small={language: frozenset(words.split()) for language, words in told["small"].items()},
        pairs=frozenset(told["pairs"]["asking"].split()),
        **{name: _any_of(told["asks"][name]) for name in ("time", "number", "whether")},
        **{name: _any_of(told["named"][name]) for name in ("counted", "counter", "chosen")},
        units=tuple((_any_of(unit["asks"]), _any_of(unit["has"])) for unit in told["units"].values()),
        has_number=re.compile(rf"(?:\d[\d.,:]*|{_HAN}+|{_KOREAN}|\b(?:{numbers})\b)"),
        has_time=re.compile(rf"[日月年時时点曜]|[요월일]일|(?:^|\s)\S*시에|\b(?:{times})\b"),
    )


def _any_of(patterns: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


def _is_counted(text: str, noun: frozenset[str], stem: Callable[[str], frozenset[str]]) -> bool:
    """Return whether a number stands in front of a noun."""
    for number in _known().has_number.finditer(text):
        behind = text[number.end() : number.end() + 100].partition(". ")[0].split()
        if noun <= stem(" ".join(behind[:COUNTED_WITHIN_WORDS])):
            return True
    return False


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return next((group for group in found.groups() if group), None) if found else None
