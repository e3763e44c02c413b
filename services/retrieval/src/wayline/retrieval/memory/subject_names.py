"""Which subjects a text names: by their names as whole words, and by nothing like them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from wayline.contracts.memory import SubjectRef

WORDS_MAX = 6
"""Of a name that is found in a text."""
CHARS_MIN, UNSPACED_CHARS_MIN = 3, 2
"""Of a name: shorter ones are words of any text."""
UNSPACED_CHARS_MAX = 12
"""Of a name in a script without spaces."""
PHRASES_MAX = 5_000
"""Of one text that are compared with names."""
NO_NAME = ""
"""The key of a subject that no text can name."""
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_RUN = re.compile(rf"[{_UNSPACED}]+")


class Named(NamedTuple):
    """A subject and how it is called."""

    ref: SubjectRef
    name: str
    key: str


def name_key(ref: SubjectRef, name: str) -> str:
    """Return what a subject is found by; NO_NAME where its name is too short, too long, or a number."""
    called = name.strip() or ref.id
    words = _WORD.findall(called)
    key = " ".join(word.casefold() for word in words)
    least = UNSPACED_CHARS_MIN if _RUN.fullmatch(called) else CHARS_MIN
    longest = UNSPACED_CHARS_MAX if _RUN.fullmatch(called) else 200
    plain = not any(letter.isalpha() for letter in key)
    return NO_NAME if plain or not least <= len(key) <= longest or len(words) > WORDS_MAX else key


def phrases(text: str) -> dict[str, bool]:
    """Return the keys that a text has, and whether one of its places begins with a capital letter."""
    found: dict[str, bool] = {}
    for phrase in _phrases(text):
        key = phrase.casefold()
        found[key] = found.get(key, False) or phrase[0].isupper()
        if len(found) >= PHRASES_MAX:
            break
    return found


def _phrases(text: str) -> Iterator[str]:
    words = _WORD.findall(text)
    for at, word in enumerate(words):
        for count in range(1, min(WORDS_MAX, len(words) - at) + 1):
            yield " ".join(words[at : at + count])
        if _RUN.fullmatch(word):
            for begin in range(len(word)):
                for end in range(begin + UNSPACED_CHARS_MIN, min(begin + UNSPACED_CHARS_MAX, len(word)) + 1):
                    yield word[begin:end]


def named_in(own: SubjectRef, found: dict[str, bool], candidates: Iterable[Named]) -> list[SubjectRef]:
    """Return the subjects that a text about `own` names; a name that two subjects have says nothing.

    What is written with a capital letter counts only where the text does so, too: `Will` is no `will`.
    """
    by_key: dict[str, list[Named]] = {}
    for one in candidates:
        by_key.setdefault(one.key, []).append(one)
    alone = [called[0] for called in by_key.values() if len(called) == 1]
    fits = [one for one in alone if one.key in found and (found[one.key] or not _called(one)[0].isupper())]
    return sorted((one.ref for one in fits if one.ref != own), key=lambda ref: (ref.type, ref.id))


def _called(one: Named) -> str:
    return _WORD.findall(one.name.strip() or one.ref.id)[0]
