"""Whether the log has room for new jobs: the last fifth belongs to those that run."""

from __future__ import annotations

import time

from wayline.chassis import Bus
from wayline.contracts.errors import Retry

FULL_AT = 0.8
FRESH_S = 2.0
AGAIN_S = 2.0


class Room:
    """Watches how full the stream of job logs is; asked often, it looks every two seconds."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._looked_at = 0.0
        self._used = 0.0

    async def require(self) -> None:
        """Pass while there is room. Raises Retry: accepted jobs wait in their queue, and a full queue says 429."""
        if time.monotonic() - self._looked_at > FRESH_S:
            info = await self._bus.js.stream_info("EVENTS")
            limit = info.config.max_bytes or 0
            self._used = info.state.bytes / limit if limit > 0 else 0.0
            self._looked_at = time.monotonic()
        if self._used >= FULL_AT:
            raise Retry(
                f"the log is {self._used:.0%} full: new jobs wait; raise max_bytes of EVENTS or let old jobs expire",
                after_s=AGAIN_S,
            )
