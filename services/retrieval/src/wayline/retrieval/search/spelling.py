"""Find words that differ from a misspelt one by one letter: left out, added, changed, or swapped with its neighbour."""

from __future__ import annotations

import re

LETTERS_MIN, LETTERS_MAX = 4, 20
"""Of shorter words too many differ by one letter; longer ones are no words."""

_WORD = re.compile(r"[^\W\d_ǀǁǂǃ]+")


def may_be_misspelt(word: str) -> bool:
    """Return whether other spellings of a word are looked for: it is of letters alone, neither short nor long."""
    return LETTERS_MIN <= len(word) <= LETTERS_MAX and _WORD.fullmatch(word) is not None


def deletions(word: str) -> list[str]:
    """Return a word and what is left of it without one of its letters: near words share one of these."""
    return [word, *dict.fromkeys(word[:at] + word[at + 1 :] for at in range(len(word)))]


def one_letter_apart(one: str, other: str) -> bool:
    """Return whether two different words become the same by one letter left out, added, changed or swapped."""
    if one == other or abs(len(one) - len(other)) > 1:
        return False
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    a, b = one[start:], other[start:]
    if len(a) == len(b):
        return a[1:] == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
    longer, shorter = (a, b) if len(a) > len(b) else (b, a)
    return longer[1:] == shorter
