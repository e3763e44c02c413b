"""How a test waits: until something is true, with a bound and a reason, or until the server knows a subscription."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from nats.aio.client import Client

T = TypeVar("T")

POLL_MIN_S = 0.005
POLL_MAX_S = 0.05
POLL_FACTOR = 1.3
WITHIN_S = 60.0
"""Only a failure waits so long: a bound that a loaded machine can reach is an assertion about its speed."""


async def until(predicate: Callable[[], T | Awaitable[T]], *, within: float = WITHIN_S, why: str) -> T:
    """Return the predicate's first true answer, or fail saying `why` we waited for it; `within` is in seconds."""
    deadline, pause = time.monotonic() + within, POLL_MIN_S
    while True:
        result = predicate()
        answer = cast("T", await result if inspect.isawaitable(result) else result)
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"still not true after {within:g} s: {why} (last answer: {answer!r})")
        await asyncio.sleep(pause)
        # What comes soon is seen at once; a look at the bus or the database costs what the waited-for work could use.
        pause = min(pause * POLL_FACTOR, POLL_MAX_S)


async def known_to_server(*clients: Client) -> None:
    """Wait until the server knows every subscription that these clients have made."""
    # A client writes PING at once but commands through a buffer: one round trip may overtake it, two cannot.
    for _ in range(2):
        await asyncio.gather(*(client.flush() for client in clients))
