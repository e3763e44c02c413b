"""Ask a cluster that may be choosing who leads a stream just now."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from nats.js.errors import BadRequestError

from wayline.chassis.connection.bus import AWAY
from wayline.contracts.errors import Unavailable

T = TypeVar("T")

LEADER_WITHIN_S = 30.0
ASK_AGAIN_S = 0.2
NO_PEERS = 10005
"""What a leader answers that has not heard of all servers of a young cluster yet: it knows no place for a copy."""


async def once_led(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask, and again while there is no leader, or no place for a copy: a start or a migration does not end for it.

    Raises Unavailable after 30 s, or at once what was refused for another reason.
    """
    deadline = time.monotonic() + LEADER_WITHIN_S
    while True:
        try:
            return await ask()
        except AWAY as error:
            if time.monotonic() > deadline:
                raise Unavailable("the bus", detail=type(error).__name__) from error
        except BadRequestError as error:
            if error.err_code != NO_PEERS:
                raise
            if time.monotonic() > deadline:
                raise Unavailable("the cluster", detail="too few servers have joined it") from error
        await asyncio.sleep(ASK_AGAIN_S)
