"""Measures how much later than it asked a service's event loop lets it go on."""

from __future__ import annotations

import asyncio

from wayline.chassis.concurrency.awaited_tasks import stopped
from wayline.telemetry import metrics

EVERY_S = 1.0


class LoopLag:
    """Sleeps a second, again and again, and counts by how much each sleep was longer than that."""

    def __init__(self, service: str) -> None:
        self._observe = metrics.loop_lag_seconds.labels(service).observe
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to measure."""
        self._task = asyncio.create_task(self._run(), name="loop lag")

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            asked = clock() + EVERY_S
            await asyncio.sleep(EVERY_S)
            self._observe(max(0.0, clock() - asked))

    async def stop(self, grace_s: float) -> None:
        """Measure no more."""
        if self._task is not None:
            await stopped(self._task)
