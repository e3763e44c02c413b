"""Join hits that stand side by side in one document, so that a reader gets one text and not its pieces out of order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

JOINED_MAX = 8
"""Passages of one hit: of a longer run the next hit begins."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a passage stands in its document; it is a slice of the document's text."""

    document_id: str
    text: str
    start: int | None
    end: int | None
    space_before: str | None
    """Between the passage before it and this one. None: it was stored before that was kept."""

    @property
    def is_known(self) -> bool:
        """Return whether the passage is the slice that its place names."""
        return self.start is not None and self.end is not None and self.end - self.start == len(self.text)


def join_neighbours(places: Sequence[Place]) -> list[tuple[int, ...]]:
    """Return which passages are one hit, by their numbers in the order of the text; the hit of the best comes first.

    `places` are in the order of their scores, the best first.
    """
    runs: list[list[int]] = []
    known = [at for at, place in enumerate(places) if place.is_known]
    by_place = sorted(known, key=lambda at: (places[at].document_id, places[at].start or 0, places[at].end or 0))
    for _, same in groupby(by_place, key=lambda at: places[at].document_id):
        runs += _runs(places, same)
    alone = [[at] for at, place in enumerate(places) if not place.is_known]
    return sorted((tuple(run) for run in [*runs, *alone]), key=min)


def _runs(places: Sequence[Place], same: Iterable[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for at in same:
        if runs and len(runs[-1]) < JOINED_MAX and _gap(places[runs[-1][-1]], places[at]) is not None:
            runs[-1].append(at)
        else:
            runs.append([at])
    return runs


def joined_text(places: Sequence[Place]) -> str:
    """Return the text of passages that stand side by side, in order, what two of them share once."""
    text = places[0].text
    for before, after in pairwise(places):
        text += _gap(before, after) or ""
        text += after.text[max(0, (before.end or 0) - (after.start or 0)) :]
    return text


def _gap(before: Place, after: Place) -> str | None:
    """Return the white space between two passages; None: there is something else between them."""
    assert before.end is not None and after.start is not None and after.end is not None
    if after.start <= before.end:
        # What lies wholly inside of the other adds nothing, and its end would be a step back.
        return "" if after.end >= before.end else None
    space = after.space_before
    return space if space is not None and before.end + len(space) == after.start else None
