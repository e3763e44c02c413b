"""Ask a cluster that may be choosing who leads a stream just now."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from nats.js.errors import ServiceUnavailableError

from wayline.chassis.connection.bus import AWAY

T = TypeVar("T")

LEADER_WITHIN_S = 30.0
ASK_AGAIN_S = 0.2
LEADERLESS = (*AWAY, ServiceUnavailableError)
"""What a server answers, or does not, while there is no leader."""


async def once_led(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask, and again while there is no leader: a start or a migration does not end for it.

    Raises what the last try raised, after 30 s.
    """
    deadline = time.monotonic() + LEADER_WITHIN_S
    while True:
        try:
            return await ask()
        except LEADERLESS:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(ASK_AGAIN_S)
