"""Finds phrases in a text: all of them in one pass of one pattern. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

_Branches = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Phrases:
    """Phrases in lower case, each a sign of one or more things."""

    pattern: re.Pattern[str]
    meanings: Mapping[str, tuple[tuple[str, int], ...]]
    """Of each phrase the things that it is a sign of, with the characters that say so: a shorter phrase may be its
    beginning."""

    @classmethod
    def of(cls, lists: Mapping[str, Iterable[str]]) -> Self:
        """Build them from lists of phrases by what they are signs of."""
        known = {name: [phrase.lower() for phrase in phrases] for name, phrases in lists.items()}
        every = {phrase for phrases in known.values() for phrase in phrases}
        meanings = {phrase: tuple(_meant(phrase, known)) for phrase in every}
        return cls(re.compile(rf"(?<!\w)(?=({any_of(every)}))"), meanings)

    def count(self, lowered: str) -> dict[str, int]:
        """Count by what they are signs of the phrases of a text in lower case, where a word begins."""
        found: dict[str, int] = {}
        read: dict[str, int] = {}
        for match in self.pattern.finditer(lowered):
            start = match.start()
            for name, length in self.meanings[match[1]]:
                if start >= read.get(name, 0):
                    found[name] = found.get(name, 0) + 1
                    read[name] = start + length
        return found


def any_of(phrases: Iterable[str]) -> str:
    """Return a pattern of phrases that tries each beginning once, and takes the longest phrase that fits.

    Of no phrases: one that matches nothing.
    """
    root: _Branches = {}
    for phrase in sorted(phrases):
        branches = root
        for character in phrase:
            branches = branches.setdefault(character, {})
        branches[""] = {}
    return _pattern(root) or "(?!)"


def _pattern(branches: _Branches) -> str:
    several = [re.escape(character) + _pattern(after) for character, after in branches.items() if character]
    if not several:
        return ""
    return f"(?:{'|'.join(several)})" + ("?" if "" in branches else "")


def _meant(phrase: str, known: Mapping[str, Iterable[str]]) -> Iterable[tuple[str, int]]:
    """Yield what a phrase is a sign of, with the longest beginning of it that is one."""
    for name, phrases in known.items():
        length = max((len(one) for one in phrases if phrase.startswith(one)), default=0)
        if length:
            yield name, length
