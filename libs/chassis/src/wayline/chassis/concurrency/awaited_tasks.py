"""Wait for a task for a while, and end one for sure: one cancel is not enough."""

from __future__ import annotations

import asyncio
from typing import Any

CANCEL_AGAIN_S = 0.05


async def ended_within(task: asyncio.Future[Any], within_s: float) -> bool:
    """Return whether a task ends in time; it goes on if not, and when the caller is cancelled.

    Does what `asyncio.wait` does for one task, at a good half of its cost.
    """
    if task.done():
        return True
    over = asyncio.get_running_loop().create_future()

    def wake(_: object = None) -> None:
        if not over.done():
            over.set_result(None)

    timer = asyncio.get_running_loop().call_later(within_s, wake)
    task.add_done_callback(wake)
    try:
        await over
    finally:
        timer.cancel()
        task.remove_done_callback(wake)
    return task.done()


async def stopped(*tasks: asyncio.Future[Any], again_s: float = CANCEL_AGAIN_S) -> None:
    """Cancel tasks until they have ended, and drop their results and errors.

    `again_s` is the time a task has to clean up after itself before it is cancelled again.

    A cancel can be lost: `asyncio.wait_for` in Python 3.11 returns a result that arrives in the same turn as the
    cancel, and nats-py swallows one while it flushes. A heartbeat that survives its job beats for ever.
    """
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=again_s)
    for task in tasks:
        if not task.cancelled():
            task.exception()
