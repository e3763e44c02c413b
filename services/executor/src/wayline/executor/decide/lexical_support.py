"""Whether the words of a fact were said in a conversation: an invention has none of them near each other. Pure.

Chosen on two public sets by `make memory-quality` (docs/memory.md): a window of so many words, and more than a third of
the fact's telling words in it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

WINDOW_WORDS = 40
SHARE_MIN = 1 / 3
"""Of a fact's telling words more than this share must stand in one window."""
SAID_CHARS_MAX = 60_000
"""Of a conversation that is looked at; of a longer one nothing is told."""
ENGLISH_SHARE_MIN = 0.02
"""Of the words of an English text those that are English function words; in other languages there are next to none."""
STEM_MIN = 4
"""Letters that two forms of a word have in common."""
ENDING_MAX = 4
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_RUN = re.compile(rf"([{_UNSPACED}]+)|([^\W_{_UNSPACED}]+)")
_LATIN = re.compile(r"[a-z]")
_FUNCTION_WORDS = frozenset(
    "a an and are as at be been but by did do does for from had has have he her his i in into is it its me my of on or "
    "our she so that the their them then there they this those to us was we were what when where which who will with "
    "would you your not no never".split()
)
_ENGLISH = frozenset(
    "and are been by but did does for from had has have is it its my of our she that the their them they this those "
    "were what which will with would you your not".split()
)
"""Those that other languages do not have, too."""
_SUBJECTS = frozenset("user users client clients customer customers s".split())


def is_unsaid(fact: str, *, by_user: Sequence[str], by_others: Sequence[str] = ()) -> bool:
    """Return whether too few of a fact's telling words stand together in what was said, by the user or by tools.

    Where the user speaks another language or script than the fact's, or too much was said, nothing can be told: False.
    """
    if sum(map(len, (*by_user, *by_others))) > SAID_CHARS_MAX:
        return False
    # A window reaches over the end of a message, as talk does.
    of_user, of_others = ([word for text in texts for word in words_of(text)] for texts in (by_user, by_others))
    wanted = frozenset(words_of(fact)) - _FUNCTION_WORDS - _SUBJECTS
    if not wanted or not _are_comparable(words_of(fact), of_user):
        return False
    return max(_best_window(wanted, of_user), _best_window(wanted, of_others)) <= SHARE_MIN * len(wanted)


def words_of(text: str) -> list[str]:
    """Return the words of a text, folded; in scripts without spaces pairs of characters."""
    return list(_words(text))


def _words(text: str) -> Iterator[str]:
    folded = unicodedata.normalize("NFKD", text.casefold())
    plain = unicodedata.normalize("NFKC", "".join(one for one in folded if not unicodedata.combining(one)))
    for unspaced, word in _RUN.findall(plain):
        if unspaced:
            yield from (unspaced[at : at + 2] for at in range(max(1, len(unspaced) - 1)))
        else:
            yield word


def _best_window(wanted: frozenset[str], spoken: list[str]) -> int:
    """Return how many of the words stand in the window that has most of them."""
    means: dict[str, frozenset[str]] = {}
    places: list[tuple[int, str]] = []
    for at, word in enumerate(spoken):
        if word not in means:
            means[word] = frozenset(one for one in wanted if _is_one_word(one, word))
        places += [(at, one) for one in means[word]]
    best, first = 0, 0
    within: Counter[str] = Counter()
    for at, word in places:
        within[word] += 1
        while places[first][0] <= at - WINDOW_WORDS:
            left = places[first][1]
            within[left] -= 1
            if not within[left]:
                del within[left]
            first += 1
        best = max(best, len(within))
    return best


def _is_one_word(one: str, other: str) -> bool:
    """Return whether two words are forms of one: equal but for their endings."""
    if one == other:
        return True
    shorter, longer = sorted((len(one), len(other)))
    if shorter < STEM_MIN or longer - shorter > ENDING_MAX:
        return False
    stem = max(STEM_MIN, shorter - 2)
    return one[:stem] == other[:stem]


def _are_comparable(fact: list[str], spoken: list[str]) -> bool:
    if any(map(_LATIN.search, fact)) != any(map(_LATIN.search, spoken)):
        return False
    if not any(word in _ENGLISH for word in fact):
        return True
    english = sum(word in _ENGLISH for word in spoken)
    return english >= ENGLISH_SHARE_MIN * len(spoken)
