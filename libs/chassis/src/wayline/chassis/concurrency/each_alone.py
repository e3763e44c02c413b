"""Do something for each of several rows, so that a bad one stops none of the others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import structlog

from wayline.chassis.concurrency.periodic import PASSING

log = structlog.get_logger()

R = TypeVar("R")


async def each_alone(
    what: str,
    rows: Iterable[R],
    do: Callable[[R], Awaitable[object]],
    *,
    mark: Callable[[R, str], Awaitable[object]] | None = None,
) -> None:
    """Do something for each row, one after another; one that fails is logged and marked, and the others go on.

    `mark` gets the row and why it failed: a row that is read again at the next look must not fail for ever. Errors that
    pass by themselves are raised: what is away for one row is away for the others.
    """
    for row in rows:
        await alone(what, row, do, mark=mark)


async def alone(
    what: str,
    row: R,
    do: Callable[[R], Awaitable[object]],
    *,
    mark: Callable[[R, str], Awaitable[object]] | None = None,
) -> None:
    """Do something for one row of several; where it fails it is logged and marked."""
    try:
        await do(row)
    except PASSING:
        raise
    except Exception as error:  # one row must not hold up the others
        log.error("a row failed", what=what, row=repr(row)[:200], error=repr(error), exc_info=error)
        if mark is not None:
            await mark(row, f"{type(error).__name__}: {error}"[:500])
