"""Dead letters: what could not be handled, to list and to read."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from wayline.gateway.adapters.dead_letters import DeadLetters
from wayline.gateway.doors import Admin, Door
from wayline.gateway.openapi import fails
from wayline.gateway.routes import StrictRoute
from wayline.gateway.shapes import DeadLetterBody, DeadLetterPage

router = APIRouter(prefix="/v1/dead-letters", tags=["dead letters"], route_class=StrictRoute)

SEQUENCE_MAX = 2**63 - 1


@router.get("", responses=fails())
async def list_dead_letters(
    door: Door,
    caller: Admin,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[
        str | None, Query(pattern=r"^[1-9][0-9]{0,17}$", description="`next_cursor` of the page before.")
    ] = None,
) -> DeadLetterPage:
    """The messages of this tenant that could not be handled, newest first."""
    return await DeadLetters(door.bus, caller.tenant).page(limit=limit, before=int(cursor) if cursor else None)


@router.get("/{sequence}", responses=fails(404))
async def get_dead_letter(
    sequence: Annotated[int, Path(ge=1, le=SEQUENCE_MAX)], door: Door, caller: Admin
) -> DeadLetterBody:
    """One of them with its headers and what it said."""
    return await DeadLetters(door.bus, caller.tenant).get(sequence)
