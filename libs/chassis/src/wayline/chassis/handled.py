"""Counts of what a service has handled."""

from __future__ import annotations

import time
from functools import cache, partial

from wayline.telemetry import metrics


class Handled:
    """Counts the messages of one kind by their outcome, and measures how long each took."""

    def __init__(self, service: str, template: str) -> None:
        # To look a label's values up costs more than to count: what they stand for is kept, as Prometheus keeps it.
        self._messages = cache(partial(metrics.messages_handled.labels, service, template))
        self._seconds = cache(partial(metrics.handling_seconds.labels, service, template))

    def count(self, outcome: str) -> None:
        """One more message."""
        self._messages(outcome).inc()

    def measure(self, outcome: str, *, started: float) -> None:
        """One more message that began at this time of the performance counter."""
        self.count(outcome)
        self._seconds().observe(time.perf_counter() - started)
