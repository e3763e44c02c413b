"""Score the passages of segments by posting lists: where each word is, and how much it weighs there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

IMPACT_BITS = 8
IMPACT_MAX = 255
"""The weight that a word approaches the more often a passage has it; BM25's saturation, in 255 steps."""


@dataclass(frozen=True, slots=True)
class PostingList:
    """The passages of one segment that hold a word."""

    segment: int
    term: str
    postings: bytes
    """Four bytes each, big-endian: the passage's slot times 256, plus the impact."""


class Places(NamedTuple):
    """Passages of segments: of each its segment, and its slot there."""

    segments: list[int]
    slots: list[int]


def best_places(lists: Sequence[PostingList], *, weights: dict[str, float], count: int) -> Places:
    """Return the places of the passages with the highest sums of weight times impact, best first."""
    import numpy as np

    by_segment: dict[int, list[PostingList]] = {}
    for one in lists:
        by_segment.setdefault(one.segment, []).append(one)
    if not by_segment:
        return Places([], [])
    scores, segments, slots = [], [], []
    for segment, held in by_segment.items():
        every = _scores(held, weights)
        # Most passages hold none of the words, and numpy is slow to part what is mostly equal.
        best = np.flatnonzero(every)
        if len(best) > count:
            best = best[np.argpartition(every[best], -count)[-count:]]
        scores.append(every[best])
        segments.append(np.full(len(best), segment))
        slots.append(best)
    segment, slot = np.concatenate(segments), np.concatenate(slots)
    best = np.lexsort((slot, segment, -np.concatenate(scores)))[:count]
    return Places(segment[best].tolist(), slot[best].tolist())


def _scores(held: Sequence[PostingList], weights: dict[str, float]) -> NDArray[np.float32]:
    import numpy as np

    read = [(np.frombuffer(one.postings, ">u4"), weights[one.term]) for one in held]
    end = max(int(places.max(initial=0)) >> IMPACT_BITS for places, _ in read) + 1
    scores = np.zeros(end, np.float32)
    for places, weight in read:
        # A passage is once in a list, so no addition is lost.
        scores[places >> IMPACT_BITS] += (places & IMPACT_MAX).astype(np.float32) * np.float32(weight)
    return scores
