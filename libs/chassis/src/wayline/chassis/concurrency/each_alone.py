"""Do something for each of several rows, so that a bad one stops none of the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import structlog

from wayline.chassis.concurrency.periodic import PASSING

log = structlog.get_logger()

R = TypeVar("R")

WHY_MAX_CHARS = 500
"""Of an error, in a mark."""
ROW_MAX_CHARS = 200
"""Of a row, in the log."""


async def each_alone(
    what: str,
    rows: Iterable[R],
    do: Callable[[R], Awaitable[object]],
    *,
    mark: Callable[[R, str], Awaitable[object]] | None = None,
    beside: int = 1,
) -> None:
    """Do something for each row, so many beside each other; one that fails is logged and marked, the others go on.

    `mark` gets the row and why it failed: a row that is read again at the next look must not fail for ever. Errors that
    pass by themselves are raised: what is away for one row is away for the others.
    """
    left = iter(rows)

    async def one_after_another() -> None:
        for row in left:
            await alone(what, row, do, mark=mark)

    ended = await asyncio.gather(*(one_after_another() for _ in range(beside)), return_exceptions=True)
    for error in ended:
        if error is not None:
            raise error


async def alone(
    what: str,
    row: R,
    do: Callable[[R], Awaitable[object]],
    *,
    mark: Callable[[R, str], Awaitable[object]] | None = None,
) -> None:
    """Do something for one row of several; where it fails it is logged and marked."""
    error = await _failure(what, row, do)
    if error is None or mark is None:
        return
    why = f"{type(error).__name__}: {error}"[:WHY_MAX_CHARS]
    # A mark that cannot be written must not hold up the others either.
    await _failure(f"mark of a {what}", row, lambda bad: mark(bad, why))


async def _failure(what: str, row: R, do: Callable[[R], Awaitable[object]]) -> Exception | None:
    """Do something for a row, and return the error with which it failed. Raises errors that pass by themselves."""
    try:
        await do(row)
    except PASSING:
        raise
    except Exception as error:  # one row must not hold up the others
        log.error("a row failed", what=what, row=repr(row)[:ROW_MAX_CHARS], error=repr(error), exc_info=error)
        return error
    return None
