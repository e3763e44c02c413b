"""MCP servers whose tools agents use: the installation's, and a tenant's own."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, TypeAlias

from fastapi import APIRouter, Body, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from wayline.contracts.errors import Conflict, Reject, Retry
from wayline.contracts.mcp_servers import (
    ApproveDefinitions,
    DeleteServer,
    EnableServer,
    GetImpact,
    GetServer,
    ListServers,
    PutServer,
    ServerDeleted,
    ServerImpact,
    ServerList,
    ServerReport,
    ServerView,
    TrySavedServer,
    TryServer,
)
from wayline.contracts.server_config import ServerConfig
from wayline.gateway.conditions import IfUnchanged, entity_tag
from wayline.gateway.handlers.shared.changing import Changeable, tagged
from wayline.gateway.handlers.shared.deleting import was_there
from wayline.gateway.handlers.shared.dependencies import Admin, Gateway, GatewayDependency, Reader
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails, tags
from wayline.gateway.paging import PageCursor, Paged, PageLimit, page_of
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/mcp", tags=["mcp servers"], route_class=StrictRoute)

EXAMPLE = {
    "url": "https://bank.example/mcp",
    "headers": {"Authorization": "Bearer secret"},
    "effects": {"pay": "once", "rate": "read"},
}

NamePath: TypeAlias = Annotated[
    str, Path(pattern=r"^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$", max_length=32, examples=["bank"])
]
NameQuery: TypeAlias = Annotated[
    str | None,
    Query(
        pattern=r"^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$",
        description="A saved server: `**********` in the body stands for its secrets.",
    ),
]
EnabledQuery: TypeAlias = Annotated[
    bool | None, Query(description="`false` saves it without connecting to it; left out, it is as enabled as before.")
]
ShownQuery: TypeAlias = Annotated[
    str | None,
    Query(
        pattern=r"^[0-9a-f]{64}$",
        description="`sha256` of a test's report: what the server offers first is approved where it is that.",
    ),
]
AcceptQuery: TypeAlias = Annotated[
    bool,
    Query(
        description="Connect first, and declare the effects that the server's own hints propose, where the body names "
        "none; 409 where it cannot be connected to, or offers something else than what `shown` names."
    ),
]
ToolQuery: TypeAlias = Annotated[
    tuple[str, ...], Query(max_length=100, description="Only definitions of this tool; may be given several times.")
]
TRY_WITHIN_S = 65.0
"""Longer than the registry tries: a program may be downloaded first."""
IMPACT_WITHIN_S = 150.0
"""A server may be connected to first, and a month of calls compared."""


class DefinitionApproval(BaseModel):
    """Which definitions of a server are approved."""

    model_config = ConfigDict(extra="forbid")

    sha256: tuple[Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")], ...] = Field(
        min_length=1, max_length=2_001, description="Of the definitions, as they were shown."
    )


ConfigBody: TypeAlias = Annotated[ServerConfig, Body(examples=[EXAMPLE])]


class ServerPage(ServerList, Paged):
    """A page of the servers that a tenant's agents can use, by name."""


@router.get("/servers", responses=fails(400))
async def list_servers(
    gateway: GatewayDependency, caller: Reader, limit: PageLimit = 100, cursor: PageCursor = None
) -> ServerPage:
    """Page through the servers, by name, each with its state; values of secrets are masked."""
    found = await gateway.bus.ask(ListServers(tenant=caller.tenant), ServerList)
    page = page_of(found.servers, limit=limit, cursor=cursor, key=lambda server: server.name)
    return ServerPage(servers=page.items, next_cursor=page.next_cursor)


@router.post("/servers/test", responses=fails(400, 409, 413, 429))
async def test_configuration(
    config: ConfigBody, gateway: GatewayDependency, caller: Admin, name: NameQuery = None
) -> ServerReport:
    """Connect to a server that is not saved, and return what it offers or why it cannot be reached."""
    request = TryServer(tenant=caller.tenant, name=name, config=config)
    return await gateway.bus.ask(request, ServerReport, timeout_s=TRY_WITHIN_S)


@router.post("/servers/{name}/test", responses=fails(404, 409, 429))
async def test_server(name: NamePath, gateway: GatewayDependency, caller: Admin) -> ServerReport:
    """Connect to a saved server once more, and return what it offers or why it cannot be reached."""
    request = TrySavedServer(tenant=caller.tenant, name=name)
    return await gateway.bus.ask(request, ServerReport, timeout_s=TRY_WITHIN_S)


@router.get("/servers/{name}", responses=tags(404))
async def get_server(
    name: NamePath, gateway: GatewayDependency, caller: Reader, response: Response, tool: ToolQuery = ()
) -> ServerView:
    """Return one server with definitions that wait for approval, at most 100; values of secrets are masked."""
    found = await gateway.bus.ask(GetServer(tenant=caller.tenant, name=name, tools=tool), ServerView)
    return tagged(response, found, _tag(found))


def _tag(server: ServerView) -> str:
    # Secrets are masked: when they were saved says whether they have changed.
    return entity_tag(server.model_dump(mode="json", include={"name", "of", "enabled", "config", "saved_at"}))


@router.get("/servers/{name}/impact", responses=fails(404))
async def get_impact(name: NamePath, gateway: GatewayDependency, caller: Reader) -> ServerImpact:
    """Return who uses a server's tools, and which calls of 30 days the definitions that wait would refuse."""
    request = GetImpact(tenant=caller.tenant, name=name)
    return await gateway.bus.ask(request, ServerImpact, timeout_s=IMPACT_WITHIN_S)


@router.post("/servers/{name}/impact", responses=fails(400, 409, 413, 429))
async def get_impact_of_configuration(
    name: NamePath, config: ConfigBody, gateway: GatewayDependency, caller: Admin
) -> ServerImpact:
    """Connect to a server that is not saved so, and return what saving it would touch."""
    request = GetImpact(tenant=caller.tenant, name=name, config=config)
    return await gateway.bus.ask(request, ServerImpact, timeout_s=IMPACT_WITHIN_S)


@router.put("/servers/{name}", responses=tags(400, 409, 412, 413, 429))
async def put_server(
    *,
    name: NamePath,
    config: ConfigBody,
    gateway: GatewayDependency,
    caller: Admin,
    condition: IfUnchanged,
    response: Response,
    enabled: EnabledQuery = None,
    shown: ShownQuery = None,
    accept_effects: AcceptQuery = False,
) -> ServerView:
    """Save a server of the tenant's own; `**********` in place of a secret keeps the stored value.

    `undeclared` in the answer has the tools without a declared effect, `advice` how to declare it.
    """
    if accept_effects:
        config, shown = await _with_proposed_effects(gateway, caller, name, config, shown=shown)
    request = PutServer(tenant=caller.tenant, name=name, config=config, enabled=enabled, shown=shown)
    async with SERVER.changing(gateway, caller, name, condition):
        saved = await gateway.bus.ask(request, ServerView)
    with suppress(Reject, Retry):
        # Not while others wait to change it. It is saved, whatever becomes of this question.
        known = await gateway.bus.ask(GetServer(tenant=caller.tenant, name=name, settled=True), ServerView)
        saved = known.model_copy(update={"warnings": saved.warnings})
    return tagged(response, saved, _tag(saved))


async def _with_proposed_effects(
    gateway: Gateway, caller: Caller, name: str, config: ServerConfig, *, shown: str | None
) -> tuple[ServerConfig, str]:
    """Return a configuration with the effects that its server proposes, and the hash of what the server offers.

    Raises Conflict where it cannot be connected to, or offers something else than was shown.
    """
    ask = TryServer(tenant=caller.tenant, name=name, config=config)
    report = await gateway.bus.ask(ask, ServerReport, timeout_s=TRY_WITHIN_S)
    if not report.ok:
        raise Conflict(f"it cannot be connected to, so it proposes no effects: {report.why}")
    if shown not in (None, report.sha256):
        raise Conflict("the server offers something else than what was shown: test it again; nothing is saved")
    proposed = {tool.name: tool.proposed for tool in report.tools if tool.proposed is not None}
    # What the administrator has declared stays.
    return config.model_copy(update={"effects": {**proposed, **config.effects}}), report.sha256


@router.delete("/servers/{name}", responses=fails(404, 409, 412))
async def delete_server(
    name: NamePath, gateway: GatewayDependency, caller: Admin, condition: IfUnchanged
) -> ServerDeleted:
    """Remove a server of the tenant's own with its secrets; calls under way end first."""
    async with SERVER.changing(gateway, caller, name, condition):
        deleted = await gateway.bus.ask(DeleteServer(tenant=caller.tenant, name=name), ServerDeleted)
    return was_there(deleted, "server", name)


async def _enable(gateway: Gateway, caller: Caller, name: str, *, enabled: bool) -> ServerView:
    async with SERVER.changing(gateway, caller, name):
        return await gateway.bus.ask(EnableServer(tenant=caller.tenant, name=name, enabled=enabled), ServerView)


@router.post("/servers/{name}/enable", responses=fails(404, 409))
async def enable_server(name: NamePath, gateway: GatewayDependency, caller: Admin) -> ServerView:
    """Connect to a server again whose tools were disabled."""
    return await _enable(gateway, caller, name, enabled=True)


@router.post("/servers/{name}/disable", responses=fails(404, 409))
async def disable_server(name: NamePath, gateway: GatewayDependency, caller: Admin) -> ServerView:
    """Take a server's tools away and keep its configuration with its secrets."""
    return await _enable(gateway, caller, name, enabled=False)


@router.post("/servers/{name}/approve", responses=fails(404, 409))
async def approve_definitions(
    name: NamePath, approval: DefinitionApproval, gateway: GatewayDependency, caller: Admin
) -> ServerView:
    """Approve changed definitions by their hashes, all or none; 409 where the server offers others by now."""
    request = ApproveDefinitions(tenant=caller.tenant, name=name, sha256=approval.sha256)
    return await gateway.bus.ask(request, ServerView)


async def _server(gateway: Gateway, caller: Caller, name: str) -> ServerView:
    return await gateway.bus.ask(GetServer(tenant=caller.tenant, name=name), ServerView)


SERVER = Changeable("server", _server, _tag)
