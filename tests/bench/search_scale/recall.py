"""How many of the ten nearest passages a search finds, beside looking at every vector."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.bench.search_scale.stored import Stored
from wayline.contracts.knowledge import Filter, SearchKnowledge
from wayline.retrieval.search.search_passages import Searcher

if TYPE_CHECKING:
    from wayline.retrieval.embeddings.embedding import Vectors

CUT = 10


@dataclass(frozen=True)
class Recall:
    """What one kind of search reaches."""

    name: str
    allowed: int
    """The passages that it may find."""
    mean: float
    least: float
    p50_ms: float
    p99_ms: float


async def measure_recall(
    searcher: Searcher,
    stored: Stored,
    questions: dict[str, Vectors],
    *,
    name: str,
    filter: Filter | None = None,
    kept: Sequence[bool] | None = None,
    **how: Any,
) -> Recall:
    """Ask by vector alone; `kept` says of each passage whether the filter keeps it."""
    matrix = stored.matrix()
    places = np.arange(len(matrix)) if kept is None else np.flatnonzero(np.array(kept))
    held = matrix[places]
    shares, seconds = [], []
    for text, vector in questions.items():
        nearest = np.sort(held @ vector)[-CUT:]
        asked = SearchKnowledge(
            tenant=stored.tenant,
            query=text,
            mode="vector",
            top_k=CUT,
            filter=filter or Filter(),
            fold_duplicates=False,
            **how,
        )
        started = time.perf_counter()
        found = await searcher.search(asked)
        seconds.append(time.perf_counter() - started)
        # By how near they are, so that of two that are equally near either counts; a cosine below the least is none.
        least = nearest[0] - 1e-5
        wanted = [score for score in nearest if score >= 0.1]
        near = sum(hit.why["vector"]["score"] >= least for hit in found.hits)
        shares.append(1.0 if not wanted else min(1.0, near / len(wanted)))
    seconds.sort()
    return Recall(
        name,
        len(places),
        statistics.mean(shares),
        min(shares),
        statistics.median(seconds) * 1000,
        seconds[int(len(seconds) * 0.99)] * 1000,
    )
