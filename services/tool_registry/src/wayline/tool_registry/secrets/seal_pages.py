"""Encrypt rows anew page by page, past those that cannot be opened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog

from wayline.store.sealing import CannotOpen

log = structlog.get_logger()

PAGE_ROWS = 100
"""Read at once: what cannot be opened is passed over, however much of it there is."""

Place = tuple[str, ...]
R = TypeVar("R")


async def seal_pages(
    read: Callable[[int, Place], Awaitable[Sequence[R]]],
    seal: Callable[[R], Awaitable[bool]],
    place_of: Callable[[R], Place],
    *,
    first: Place,
    at_most: int,
) -> int:
    """Encrypt some rows anew, in the order of their places, and return how many were.

    `seal` raises CannotOpen for a row that stays under its key.
    """
    sealed, damaged, why, after = 0, 0, "", first
    while sealed < at_most and (rows := await read(min(PAGE_ROWS, at_most - sealed), after)):
        for row in rows:
            try:
                sealed += await seal(row)
            except CannotOpen as error:
                damaged, why = damaged + 1, str(error)
        after = place_of(rows[-1])
    if damaged:
        log.warning("secrets stay under their keys", rows=damaged, last=after, why=why)
    return sealed
