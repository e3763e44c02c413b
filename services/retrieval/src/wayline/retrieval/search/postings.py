"""Score the passages of segments by posting lists: where each word is, and how much it weighs there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

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


@dataclass(frozen=True, slots=True)
class Place:
    """A passage of a segment."""

    segment: int
    slot: int


def best_places(lists: Sequence[PostingList], *, weights: dict[str, float], count: int) -> list[Place]:
    """Return the places of the passages with the highest sums of weight times impact, best first."""
    import numpy as np

    by_segment: dict[int, list[PostingList]] = {}
    for one in lists:
        by_segment.setdefault(one.segment, []).append(one)
    found: list[tuple[float, int, int]] = []
    for segment, held in by_segment.items():
        scores = _scores(held, weights)
        best = np.argpartition(scores, -count)[-count:] if len(scores) > count else np.arange(len(scores))
        found += [(float(scores[slot]), segment, int(slot)) for slot in best if scores[slot] > 0]
    found.sort(key=lambda item: (-item[0], item[1], item[2]))
    return [Place(segment, slot) for _, segment, slot in found[:count]]


def _scores(held: Sequence[PostingList], weights: dict[str, float]) -> NDArray[np.float32]:
    import numpy as np

    read = [(np.frombuffer(one.postings, ">u4"), weights[one.term]) for one in held]
    end = max(int(places.max(initial=0)) >> IMPACT_BITS for places, _ in read) + 1
    scores = np.zeros(end, np.float32)
    for places, weight in read:
        # A passage is once in a list, so no addition is lost.
        scores[places >> IMPACT_BITS] += (places & IMPACT_MAX).astype(np.float32) * np.float32(weight)
    return scores
