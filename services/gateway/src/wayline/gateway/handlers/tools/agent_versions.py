"""Versions of agents: when each was saved, by whom, and what it changed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from wayline.contracts.agents import (
    VERSIONS_A_PAGE_MAX,
    AgentHistory,
    GetAgentVersion,
    ListAgentVersions,
    SavedAgent,
)
from wayline.gateway.handlers.shared.dependencies import GatewayDependency, Reader
from wayline.gateway.handlers.tools.agents import AgentPath
from wayline.gateway.openapi import fails
from wayline.gateway.paging import PageCursor, Paged, after_cursor, first_page, wrong_cursor
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/agents", tags=["agents"], route_class=StrictRoute)

NUMBER_MAX = 2**31 - 1


class AgentVersionPage(AgentHistory, Paged):
    """A page of an agent's versions, newest first."""


@router.get("/{name}/versions", responses=fails(400, 404))
async def list_agent_versions(
    name: AgentPath,
    gateway: GatewayDependency,
    caller: Reader,
    limit: Annotated[int, Query(ge=1, le=VERSIONS_A_PAGE_MAX)] = 50,
    cursor: PageCursor = None,
) -> AgentVersionPage:
    """Page through the versions of an agent, newest first, also of one that was deleted."""
    before = None if cursor is None else _number(cursor)
    asked = ListAgentVersions(tenant=caller.tenant, name=name, before=before, limit=limit + 1)
    found = await gateway.bus.ask(asked, AgentHistory)
    page = first_page(found.versions, limit=limit, key=lambda one: str(one.version))
    return AgentVersionPage(versions=page.items, next_cursor=page.next_cursor)


@router.get("/{name}/versions/{number}", responses=fails(404))
async def get_agent_version(
    name: AgentPath,
    number: Annotated[int, Path(ge=1, le=NUMBER_MAX)],
    gateway: GatewayDependency,
    caller: Reader,
) -> SavedAgent:
    """Return one version of an agent, as a job that begins with it now would go by it."""
    return await gateway.bus.ask(GetAgentVersion(tenant=caller.tenant, name=name, number=number), SavedAgent)


def _number(cursor: str) -> int:
    text = after_cursor(cursor)
    if not text.isdecimal() or not 1 <= int(text[:12]) <= NUMBER_MAX:
        raise wrong_cursor(cursor)
    return int(text)
