"""Do something again while what it needs is away."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from itertools import count
from math import inf
from typing import TypeVar

import structlog

from wayline.contracts.errors import Retry

T = TypeVar("T")

log = structlog.get_logger()
sleep = asyncio.sleep

PAUSE_MIN_S = 0.2
PAUSE_MAX_S = 30.0
SPREAD = 0.25
"""The random part of a pause: calls that failed together are not repeated together."""
LOG_FROM = 8
"""The first try that is logged; then every time their number has doubled."""


async def keep_trying(
    what: str,
    do: Callable[[], Awaitable[T]],
    *,
    on: type[Retry] = Retry,
    within_s: float = inf,
    pause_max_s: float = PAUSE_MAX_S,
) -> T:
    """Return the result of `do`; while it raises `on`, pause for the error's `after_s` and do it again.

    `do` must be harmless to repeat. Raises the last error once `within_s` is over; without `within_s`, only a cancel
    ends the wait, as it does for a held job.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + within_s
    for tries in count(1):
        try:
            return await do()
        except on as error:
            if loop.time() > until:
                raise
            if tries >= LOG_FROM and tries.bit_count() == 1:
                log.warning("still away", what=what, tries=tries, why=str(error))
            pause_s = min(max(error.after_s, PAUSE_MIN_S), pause_max_s)
        await sleep(pause_s * (1 + SPREAD * random.random()))
    raise AssertionError("it counts without end")
