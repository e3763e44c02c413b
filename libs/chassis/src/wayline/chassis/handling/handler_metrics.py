"""Metrics of the messages that a service has handled."""

from __future__ import annotations

import time
from functools import cache, partial

from wayline.telemetry import metrics


class HandlerMetrics:
    """Counts the messages of one kind by their outcome, and measures how long each took."""

    def __init__(self, service: str, template: str) -> None:
        # Looking a label's values up costs more than counting, so the labelled metrics are kept.
        self._messages = cache(partial(metrics.messages_handled.labels, service, template))
        self._seconds = cache(partial(metrics.handling_seconds.labels, service, template))

    def count(self, outcome: str) -> None:
        """Count one more message."""
        self._messages(outcome).inc()

    def measure(self, outcome: str, *, started: float) -> None:
        """Count one more message that began at this time of the performance counter, and how long it took."""
        self.count(outcome)
        self._seconds().observe(time.perf_counter() - started)
