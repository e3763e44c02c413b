"""Providers made ready before anybody calls them: the first call would wait seconds for an SDK to be imported."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from wayline.llm.model import Model, Warmable

WARM_AFTER_S = 0.5
"""After the start: where all services share a process, what is imported earlier delays them all. A call that comes
before waits for what is left: one SDK takes a second, another one three."""


class SdkWarmup:
    """Runs beside the lanes, once."""

    def __init__(self, models: Iterable[Model]) -> None:
        self._models = [model for model in models if isinstance(model, Warmable)]
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._warm()) if self._models else None

    async def stop(self, grace_s: float) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _warm(self) -> None:
        await asyncio.sleep(WARM_AFTER_S)
        # What goes wrong here goes wrong again in the first call, which says so.
        await asyncio.gather(*(model.warm() for model in self._models), return_exceptions=True)
