"""Tells few events from many, by what came lately. Pure."""

from __future__ import annotations


class RecentEvents:
    """Counts events; they are forgotten at a rate, so that a burst after a pause is few and a steady stream is many."""

    def __init__(self, *, few_per_s: float, few_at_once: float) -> None:
        self._per_s = few_per_s
        self._at_once = few_at_once
        self._count = 0.0
        self._at = 0.0

    def add(self, events: int, *, now: float) -> None:
        self._count = max(self._count - (now - self._at) * self._per_s, 0.0) + events
        self._at = now

    @property
    def are_few(self) -> bool:
        return self._count <= self._at_once
