"""Whether the log has room for new jobs: the last fifth belongs to those that run."""

from __future__ import annotations

import time

from wayline.chassis import Bus
from wayline.chassis.concurrency.single_flight import SingleFlight
from wayline.contracts.errors import Deferred

FULL_AT = 0.8
FRESH_S = 2.0
AGAIN_S = 2.0
STREAM = "EVENTS"


class LogCapacity:
    """Watches how full the stream of job logs is; asked often, it looks every two seconds."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._looked_at = 0.0
        self._used = 0.0
        self._looks = SingleFlight[str, None]()

    async def require(self) -> None:
        """Pass while there is room. Raises Deferred: accepted jobs wait in their queue, and a full queue says 429."""
        if time.monotonic() - self._looked_at > FRESH_S:
            await self._looks.fetch(STREAM, self._look)
        if self._used >= FULL_AT:
            raise Deferred(
                f"the log is {self._used:.0%} full: new jobs wait; raise max_bytes of EVENTS or let old jobs expire",
                after_s=AGAIN_S,
            )

    async def _look(self) -> None:
        info = await self._bus.js.stream_info(STREAM)
        limit = info.config.max_bytes or 0
        self._used = info.state.bytes / limit if limit > 0 else 0.0
        self._looked_at = time.monotonic()
