"""Versions of agents: when each was saved, by whom, what it changed; and what one would be that is not saved yet."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import Field

from wayline.contracts.agents import (
    VERSIONS_A_PAGE_MAX,
    AgentConfig,
    AgentHistory,
    GetAgentVersion,
    ListAgentVersions,
    SavedAgent,
)
from wayline.contracts.errors import WaylineError
from wayline.contracts.jobs import AgentCheck, CheckAgent
from wayline.contracts.tenant_settings import (
    MEMORY_WRITING_TOOLS,
    SWITCHED_TOOLS,
    GetSettings,
    SettingsInForce,
    own_tools_off,
)
from wayline.contracts.tool_loading import always_loaded
from wayline.contracts.tools import ListTools, ToolDefinition, ToolList, may_use
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, Reader
from wayline.gateway.handlers.tools.agents import AgentPath, about_tools
from wayline.gateway.openapi import fails
from wayline.gateway.paging import PageCursor, Paged, after_number, first_page
from wayline.gateway.strict_json import StrictRoute
from wayline.llm.tokens import DEFINITION, WIRE_TOKENS_MAX, estimate

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
    before = None if cursor is None else after_number(cursor, most=NUMBER_MAX)
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


class CheckedAgent(AgentCheck):
    """What an agent would be, with the tools that it could use now."""

    tools: int | None = Field(default=None, description="Those that exist; null: they could not be looked up.")
    tools_tokens: int | None = Field(
        default=None,
        description="Of all their definitions, estimated; a prompt has fewer where some are found later.",
    )
    tools_loaded: tuple[str, ...] = Field(default=(), description="Those of them that every prompt has.")
    tools_deferred: tuple[str, ...] = Field(default=(), description="Those that are found with `tool_search`.")
    tokens_by_tool: dict[str, int] = Field(
        default_factory=dict, description="Of the definition of each tool of the tenant, usable or not, estimated."
    )


@router.post("/{name}/check", responses=fails(404, 413))
async def check_agent(name: AgentPath, config: AgentConfig, gateway: GatewayDependency, caller: Reader) -> CheckedAgent:
    """Say what an agent would be: what is wrong, its tokens, its models, the cost of a job. Nothing is saved."""
    found = await gateway.bus.ask(CheckAgent(tenant=caller.tenant, name=name, config=config), AgentCheck)
    warnings = (*found.warnings, *await about_tools(config, gateway, caller.tenant))
    return CheckedAgent(**{**dict(found), "warnings": warnings}, **await _tools_of(config, gateway, caller.tenant))


async def _tools_of(config: AgentConfig, gateway: Gateway, tenant: str) -> dict[str, Any]:
    """Return which tools an agent could use now, and how many tokens their definitions have."""
    try:
        there = await gateway.bus.ask(ListTools(tenant=tenant), ToolList)
    except WaylineError:
        return {}
    config = await _with_settings(config, gateway, tenant)
    tokens = {tool.name: _tokens(tool) for tool in there.tools}
    tools = [tool for tool in there.tools if may_use(tool.name, patterns=config.tools, off=config.tools_off)]
    loaded = [tool.name for tool in always_loaded(config, tools)]
    return {
        "tools": len(tools),
        "tools_tokens": sum(tokens[tool.name] for tool in tools),
        "tools_loaded": loaded,
        "tools_deferred": [tool.name for tool in tools if tool.name not in loaded],
        "tokens_by_tool": tokens,
    }


async def _with_settings(config: AgentConfig, gateway: Gateway, tenant: str) -> AgentConfig:
    """Return a configuration with what it leaves to the tenant's settings, and without the tools of switches."""
    settings = await gateway.bus.ask(GetSettings(tenant=tenant), SettingsInForce)
    left = {name for name in ("tools", *SWITCHED_TOOLS) if name not in config.model_fields_set}
    config = config.model_copy(update={name: getattr(settings, name) for name in left})
    off = [pattern for switch, tools in SWITCHED_TOOLS.items() if not getattr(config, switch) for pattern in tools]
    off += MEMORY_WRITING_TOOLS if config.memory == "read" else ()
    return config.model_copy(update={"tools_off": (*own_tools_off(config.tools_off), *off)})


def _tokens(tool: ToolDefinition) -> int:
    return estimate(tool.model_dump_json(include=DEFINITION)) + WIRE_TOKENS_MAX
