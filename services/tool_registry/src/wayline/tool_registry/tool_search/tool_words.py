"""The words of tools and of tasks: names cut into their parts, endings taken away."""

from __future__ import annotations

import re
from functools import lru_cache

WORDS_CACHED_MAX = 50_000
STEM_MIN_CHARS = 3
SHORT_ENDING_CHARS = 2

# Where a name is cut: getUserByID2 is get, User, By, ID, 2.
_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
_WORD = re.compile(r"[^\W_]+")
_STOP = frozenset(
    "a an and are as at be been but by can could did do does for from had has have he her his how i if in into is it "
    "its me my no not of on or our she should so such t than that the their them then there these they this those to "
    "was we were what when where which who why will with would you your s".split()
)
_ENDINGS = (
    "ization isation ational fulness ousness iveness ations ation ement ments ment ings ing edly ed ers er ors or ions "
    "ion ally ly al ive able ible ance ence ity ful ous ic ize ise ate e y"
).split()


def words(text: str) -> list[str]:
    """Return the words of a text that say something, in lower case and in their order."""
    return [part for word in _WORD.findall(text) for part in _parts(word)]


@lru_cache(WORDS_CACHED_MAX)
def _parts(word: str) -> tuple[str, ...]:
    return tuple(part for part in _BOUNDARY.sub(" ", word).lower().split() if part not in _STOP)


@lru_cache(WORDS_CACHED_MAX)
def stem(word: str) -> str:
    """Return what a word has in common with its other forms: `translations` and `translate` are both `transl`."""
    if len(word) <= STEM_MIN_CHARS or not word.isascii():
        return word
    word = _singular(word)
    for ending in _ENDINGS:
        left = len(word) - len(ending)
        if word.endswith(ending) and left >= STEM_MIN_CHARS + (len(ending) <= SHORT_ENDING_CHARS):
            word = word[:left]
            break
    # Planning and plan, but not billing and bil.
    doubled = len(word) > STEM_MIN_CHARS and word[-1] == word[-2] and word[-1] not in "ls"
    return word[:-1] if doubled else word


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > STEM_MIN_CHARS + 1:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word
