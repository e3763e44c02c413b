"""Dead letters: list, read and dismiss messages that could not be handled."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from wayline.gateway.adapters.dead_letters import DeadLetters
from wayline.gateway.handlers.recovery.redrives import Redrives
from wayline.gateway.handlers.shared.dependencies import Admin, Gateway, GatewayDependency
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails
from wayline.gateway.paging import (
    PAGE_MAX,
    PageCursor,
    PageLimit,
    after_numbered_moment,
    first_page,
    moment_key,
    page_in_order,
)
from wayline.gateway.shapes.dead_letters import (
    DeadLetterBody,
    DeadLetterPage,
    DismissedLetter,
    DismissedLetterList,
    DismissLetterBody,
)
from wayline.gateway.shapes.redrives import FailureGroupList, Redrive, RedriveBody, RedriveList
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/dead-letters", tags=["dead letters"], route_class=StrictRoute)

SEQUENCE_MAX = 2**63 - 1


@router.get("", responses=fails())
async def list_dead_letters(
    gateway: GatewayDependency,
    caller: Admin,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[
        str | None, Query(pattern=r"^[1-9][0-9]{0,17}$", description="`next_cursor` of the page before.")
    ] = None,
) -> DeadLetterPage:
    """Return the messages of this tenant that could not be handled, newest first."""
    return await _letters(gateway, caller).page(limit=limit, before=int(cursor) if cursor else None)


@router.get("/dismissed", responses=fails(400))
async def list_dismissed_letters(
    gateway: GatewayDependency,
    caller: Admin,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: PageCursor = None,
) -> DismissedLetterList:
    """Page through the messages that were dismissed in the last 30 days, newest first, and why."""
    found = await _letters(gateway, caller).dismissed(limit=limit + 1, after=after_numbered_moment(cursor))
    page = first_page(found, limit=limit, key=lambda one: moment_key(one.dismissed_at, str(one.sequence)))
    return DismissedLetterList(dismissed=page.items, next_cursor=page.next_cursor)


@router.get("/groups", responses=fails(400))
async def list_failure_groups(
    gateway: GatewayDependency, caller: Admin, limit: PageLimit = PAGE_MAX, cursor: PageCursor = None
) -> FailureGroupList:
    """Page through failed jobs and dead letters by cause; `fingerprint` names one."""
    found = await Redrives(gateway, caller).groups()
    page = page_in_order(found, limit=limit, cursor=cursor, key=lambda group: group.fingerprint)
    return FailureGroupList(groups=page.items, next_cursor=page.next_cursor)


@router.post("/redrive", responses=fails(404, 413))
async def redrive(body: RedriveBody, gateway: GatewayDependency, caller: Admin) -> Redrive:
    """Let every job that failed of one cause go on from its failed step, as a fork with its own budget.

    What was done before that step is not done again. The same redrive twice begins no second fork.
    """
    return await Redrives(gateway, caller).redrive(body)


@router.get("/redrives", responses=fails(400))
async def list_redrives(
    gateway: GatewayDependency,
    caller: Admin,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: PageCursor = None,
) -> RedriveList:
    """Page through who let failed jobs go on, newest first: when, of which cause and how many."""
    return await Redrives(gateway, caller).past(limit=limit, cursor=cursor)


@router.get("/{sequence:int}", responses=fails(404))
async def get_dead_letter(
    sequence: Annotated[int, Path(ge=1, le=SEQUENCE_MAX)], gateway: GatewayDependency, caller: Admin
) -> DeadLetterBody:
    """Return one dead letter with its headers and its body."""
    return await _letters(gateway, caller).get(sequence)


@router.post("/{sequence:int}/dismiss", responses=fails(404, 413))
async def dismiss_dead_letter(
    sequence: Annotated[int, Path(ge=1, le=SEQUENCE_MAX)],
    body: DismissLetterBody,
    gateway: GatewayDependency,
    caller: Admin,
) -> DismissedLetter:
    """Dismiss a dead letter: it is listed no longer, and no metric or alert counts it."""
    return await _letters(gateway, caller).dismiss(sequence, reason=body.reason, by=caller.name)


def _letters(gateway: Gateway, caller: Caller) -> DeadLetters:
    return DeadLetters(gateway.bus, gateway.store, caller.tenant)
