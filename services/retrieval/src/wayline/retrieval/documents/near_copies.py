"""Recognise documents of nearly the same text: a signature of each, and the keys under which near ones meet. Pure.

MinHash of groups of words: the share of equal places of two signatures is about the share of the groups that two texts
have in common. Texts that share much have one of their bands whole in common, so that an index finds them.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

# Numpy is imported where it is used: importing the service, as `wayline up` does for every service, shall be cheap.
if TYPE_CHECKING:
    from numpy.typing import NDArray

GROUP_WORDS = 5
WORDS_MIN = 12
"""Of a shorter text nothing is said: too many are alike."""
WORDS_MAX = 200_000
"""Of a longer text the beginning is looked at."""
PLACES = 96
BANDS = 24
SAME_MIN = 0.8
"""The share from which on a document is called a near-duplicate: 99.9 % of such pairs meet in a band."""
STRETCH_CHARS = 100_000
"""Of a text whose words are found in one go; a word that lies across the end of one counts as two."""
CANDIDATES_MAX = 200
"""Documents that are compared with a new one."""

# A character of a script without spaces is a word.
_WORD = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+")
_SEED = 20_261_126
_MIX = 0x9E3779B97F4A7C15


@cache
def _hashes() -> tuple[NDArray[Any], NDArray[Any]]:
    """Return what makes the hash of each place: its factor, and what is added."""
    import numpy as np

    seeds = np.random.Generator(np.random.PCG64(_SEED))
    factors = seeds.integers(1, 2**63, PLACES, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    return factors, seeds.integers(0, 2**63, PLACES, dtype=np.uint64)


def signature_of(texts: Iterable[str]) -> bytes | None:
    """Return the signature of a text that comes in pieces; None: it is too short. Blocking."""
    import numpy as np

    words = list(islice(_words(texts), WORDS_MAX))
    if len(words) < WORDS_MIN:
        return None
    # Most words come again: each is hashed once.
    hashes = {word: zlib.crc32(word.lower().encode()) for word in set(words)}
    hashed = np.fromiter(map(hashes.__getitem__, words), dtype=np.uint64, count=len(words))
    groups = np.zeros(len(hashed) - GROUP_WORDS + 1, dtype=np.uint64)
    for at in range(GROUP_WORDS):
        groups = groups * np.uint64(_MIX) + hashed[at : at + len(groups)]
    groups ^= groups >> np.uint64(29)
    places = [(groups * factor + more).min() for factor, more in zip(*_hashes(), strict=True)]
    # The upper half: the lower bits of such a product are hardly mixed.
    return (np.array(places, dtype=np.uint64) >> np.uint64(32)).astype("<u4").tobytes()


def _words(texts: Iterable[str]) -> Iterator[str]:
    """Yield the words of texts; a longer text's are looked for in stretches, so that other threads run between."""
    for text in texts:
        for at in range(0, len(text), STRETCH_CHARS):
            yield from _WORD.findall(text[at : at + STRETCH_CHARS])


def bands_of(signature: bytes) -> list[int]:
    """Return the keys of a signature: documents that share one are compared."""
    rows = _places(signature).reshape(BANDS, -1)
    return [zlib.crc32(row.tobytes(), number) | number << 32 for number, row in enumerate(rows)]


def share_of(one: bytes, other: bytes) -> float:
    """Return about which share of their word groups two texts have in common."""
    return float((_places(one) == _places(other)).mean())


def _places(signature: bytes) -> NDArray[Any]:
    import numpy as np

    return np.frombuffer(signature, dtype="<u4")
