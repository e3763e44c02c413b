"""Says on a call's reply subject, every two seconds, that it runs, and how far it is."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable

from wayline.contracts import headers as h
from wayline.contracts.bus_tools import HEARTBEAT_EVERY_S
from wayline.contracts.tools import PROGRESS_MAX_CHARS, ToolProgress
from wayline.sdk.answers import clean

Publish = Callable[[bytes, dict[str, str]], Awaitable[None]]


class Heartbeats:
    """The heartbeats of one call, each with what its tool said last."""

    def __init__(self) -> None:
        self._progress: ToolProgress | None = None

    def note(self, done: float, total: float | None, message: str) -> None:
        """Note how far the call is, from any thread; numbers that JSON does not have are passed over."""
        if not math.isfinite(done) or (total is not None and not math.isfinite(total)):
            return
        self._progress = ToolProgress(progress=done, total=total, message=clean(message)[:PROGRESS_MAX_CHARS])

    async def send(self, publish: Publish) -> None:
        """Publish heartbeats until it is cancelled."""
        while True:
            await asyncio.sleep(HEARTBEAT_EVERY_S)
            body = b"" if self._progress is None else self._progress.model_dump_json().encode()
            await publish(body, {h.HEARTBEAT: "1"})
