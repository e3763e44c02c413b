"""Make hits of the rows that a search found: one of several copies, neighbours as one, and why each was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wayline.contracts.knowledge import COVERED, DUPLICATES, JOINED, Hit
from wayline.retrieval.search.join_neighbours import Place, join_neighbours, joined_text
from wayline.retrieval.search.near_duplicates import fold_near_duplicates
from wayline.retrieval.search.ranking import Term, coverage
from wayline.store import Record


def hits_of(
    rows: Sequence[Record],
    *,
    terms: Sequence[Term],
    chunks: int,
    fused_with: float | None,
    fold: bool,
    join: bool,
    top_k: int,
) -> tuple[Hit, ...]:
    """Return the best hits, each with the passages that it stands for; `top_k` counts passages, joined or not."""
    copies_of = fold_near_duplicates([row["text"] for row in rows]) if fold else {at: [] for at in range(len(rows))}
    shown = list(copies_of)[:top_k]
    places = [_place(rows[at]) for at in shown]
    hits = []
    for run in join_neighbours(places) if join else [(n,) for n in range(len(shown))]:
        parts = [rows[shown[n]] for n in run]
        # Of several the best passage says why it was found, the first where the text begins.
        best, first = rows[shown[min(run)]], parts[0]
        copies = [rows[copy] for n in run for copy in copies_of[shown[n]]]
        covered = [coverage(terms, part["held"], chunks=chunks) for part in parts]
        why = _why(best, fused_with=fused_with, covered=max((one for one in covered if one is not None), default=None))
        if copies:
            why[DUPLICATES] = [copy["chunk_id"] for copy in copies]
        if len(parts) > 1:
            why[JOINED] = [part["chunk_id"] for part in parts]
        hits.append(
            Hit(
                chunk_id=best["chunk_id"],
                document_id=best["document_id"],
                document=best["name"],
                collection=best["collection"],
                text=joined_text([places[n] for n in run]),
                score=best["score"],
                why=why,
                metadata=first["metadata"],
                untrusted=any(one["untrusted"] for one in (*parts, *copies)),
                start=first["starts_at"],
                end=parts[-1]["ends_at"],
            )
        )
    return tuple(hits)


def _place(row: Record) -> Place:
    return Place(row["document_id"], row["text"], row["starts_at"], row["ends_at"], row["space_before"])


def _why(row: Record, *, fused_with: float | None, covered: float | None) -> dict[str, Any]:
    why: dict[str, Any] = {} if fused_with is None else {"vector_weight": fused_with}
    if covered is not None:
        why[COVERED] = round(covered, 4)
    if row["words_rank"] is not None:
        why["keyword"] = {"rank": row["words_rank"], "score": row["words_score"]}
    if row["vector_rank"] is not None:
        why["vector"] = {"rank": row["vector_rank"], "score": row["vector_score"]}
    return why
