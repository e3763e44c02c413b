"""Ask a cluster that may be choosing who leads a stream just now."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from nats.js.errors import BadRequestError

from wayline.chassis.connection.bus import AWAY

T = TypeVar("T")

LEADER_WITHIN_S = 30.0
ASK_AGAIN_S = 0.2
NO_PEERS = 10005
"""What a leader answers that has not heard of all servers of a young cluster yet: it knows no place for a copy."""


async def once_led(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask, and again while there is no leader, or no place for a copy: a start or a migration does not end for it.

    Raises what the last try raised, after 30 s.
    """
    deadline = time.monotonic() + LEADER_WITHIN_S
    while True:
        try:
            return await ask()
        except (*AWAY, BadRequestError) as error:
            refused = isinstance(error, BadRequestError) and error.err_code != NO_PEERS
            if refused or time.monotonic() > deadline:
                raise
        await asyncio.sleep(ASK_AGAIN_S)
