"""Make hits of the rows that a search found: one of several copies, and why each was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wayline.contracts.knowledge import COVERED, DUPLICATES, Hit
from wayline.retrieval.search.near_duplicates import fold_near_duplicates
from wayline.retrieval.search.ranking import Term, coverage
from wayline.store import Record


def hits_of(
    rows: Sequence[Record], *, terms: Sequence[Term], chunks: int, fused_with: float | None, fold: bool, top_k: int
) -> tuple[Hit, ...]:
    """Return the best hits, each with the passages that it stands for."""
    kept = fold_near_duplicates([row["text"] for row in rows]) if fold else {at: [] for at in range(len(rows))}
    hits = []
    for at, copies in list(kept.items())[:top_k]:
        row = rows[at]
        why = _why(row, fused_with=fused_with, covered=coverage(terms, row["held"], chunks=chunks))
        if copies:
            why[DUPLICATES] = [rows[copy]["chunk_id"] for copy in copies]
        hits.append(
            Hit(
                chunk_id=row["chunk_id"],
                document_id=row["document_id"],
                document=row["name"],
                collection=row["collection"],
                text=row["text"],
                score=row["score"],
                why=why,
                metadata=row["metadata"],
                untrusted=row["untrusted"] or any(rows[copy]["untrusted"] for copy in copies),
                start=row["starts_at"],
                end=row["ends_at"],
            )
        )
    return tuple(hits)


def _why(row: Record, *, fused_with: float | None, covered: float | None) -> dict[str, Any]:
    why: dict[str, Any] = {} if fused_with is None else {"vector_weight": fused_with}
    if covered is not None:
        why[COVERED] = round(covered, 4)
    if row["words_rank"] is not None:
        why["keyword"] = {"rank": row["words_rank"], "score": row["words_score"]}
    if row["vector_rank"] is not None:
        why["vector"] = {"rank": row["vector_rank"], "score": row["vector_score"]}
    return why
