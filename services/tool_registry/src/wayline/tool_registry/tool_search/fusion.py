"""One ranking of two: tools that have a query's words, and tools whose meaning is near it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wayline.tool_registry.tool_search.index import Match, ToolIndex

# Scores are added, not ranks: with vectors that understand little, reciprocal rank fusion found fewer tools than BM25
# on one of three public sets, and this as many as words alone.
NEAR_WEIGHT = 0.5
"""What a cosine of 1 counts beside the best score by words, which counts 1."""


def fuse(
    by_words: Sequence[Match], similar: Mapping[int, float], index: ToolIndex, *, best: float | None = None
) -> list[Match]:
    """Return both rankings as one, the best first; `similar` are cosines by place in the index. Without, the words'.

    `best`: the best score by words of the tools that count, where that is not the first.
    """
    if not similar:
        return list(by_words)
    scores = {at: NEAR_WEIGHT * near for at, near in similar.items() if near > 0}
    best = best or (by_words[0].score if by_words else 1.0)
    for match in by_words:
        scores[match.at] = scores.get(match.at, 0.0) + match.score / best
    ranked = sorted(scores, key=lambda at: (-scores[at], at))
    return [Match(index.tools[at], scores[at], at) for at in ranked if scores[at] > 0]
