"""The one way a test waits: until something is true, with a bound and a reason."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

T = TypeVar("T")

POLL_MIN_S = 0.005
POLL_MAX_S = 0.05
POLL_FACTOR = 1.3
WITHIN_S = 30.0
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
