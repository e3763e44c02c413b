"""Which places of the stream this process has stored, so that nobody reads them again to see whether they are."""

from __future__ import annotations

from collections.abc import Iterable

RANGES_MAX = 1_000
"""Of more the newest are kept: what lies in the others is read again."""


class StoredRanges:
    """Sequences of a stream whose messages are stored, as ranges: messages come in order but for a few."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []
        """The first and the last sequence of each, in the order in which they were stored."""

    def note(self, sequences: Iterable[int]) -> None:
        """Note that the messages at these places are stored, or hold nothing to store."""
        for sequence in sorted(sequences):
            if self._ranges and self._ranges[-1][1] + 1 == sequence:
                self._ranges[-1] = self._ranges[-1][0], sequence
            else:
                self._ranges.append((sequence, sequence))
        del self._ranges[:-RANGES_MAX]

    def end_after(self, place: int) -> int:
        """Return the place up to which everything behind this one is stored; what lies before it is forgotten."""
        for first, last in sorted(self._ranges):
            if first > place + 1:
                break
            place = max(place, last)
        self._ranges = [(first, last) for first, last in self._ranges if last > place]
        return place
