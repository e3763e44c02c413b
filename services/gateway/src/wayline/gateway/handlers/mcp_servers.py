"""MCP servers whose tools agents use: the installation's, and a tenant's own."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Body, Path

from wayline.contracts.mcp_servers import (
    DeleteServer,
    EnableServer,
    GetServer,
    ListServers,
    PutServer,
    ServerConfig,
    ServerDeleted,
    ServerList,
    ServerView,
)
from wayline.gateway.handlers.dependencies import Admin, GatewayDependency, Reader
from wayline.gateway.openapi import fails
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
ConfigBody: TypeAlias = Annotated[ServerConfig, Body(examples=[EXAMPLE])]


@router.get("/servers", responses=fails())
async def list_servers(gateway: GatewayDependency, caller: Reader) -> ServerList:
    """Return every server with its state; values of secrets are masked."""
    return await gateway.bus.ask(ListServers(tenant=caller.tenant), ServerList)


@router.get("/servers/{name}", responses=fails(404))
async def get_server(name: NamePath, gateway: GatewayDependency, caller: Reader) -> ServerView:
    """Return one server; values of secrets are masked."""
    return await gateway.bus.ask(GetServer(tenant=caller.tenant, name=name), ServerView)


@router.put("/servers/{name}", responses=fails(400, 409, 413))
async def put_server(name: NamePath, config: ConfigBody, gateway: GatewayDependency, caller: Admin) -> ServerView:
    """Save a server of the tenant's own; `**********` in place of a secret keeps the stored value."""
    return await gateway.bus.ask(PutServer(tenant=caller.tenant, name=name, config=config), ServerView)


@router.delete("/servers/{name}", responses=fails(409))
async def delete_server(name: NamePath, gateway: GatewayDependency, caller: Admin) -> ServerDeleted:
    """Remove a server of the tenant's own with its secrets; calls under way end first."""
    return await gateway.bus.ask(DeleteServer(tenant=caller.tenant, name=name), ServerDeleted)


@router.post("/servers/{name}/enable", responses=fails(404, 409))
async def enable_server(name: NamePath, gateway: GatewayDependency, caller: Admin) -> ServerView:
    """Connect to a server again whose tools were disabled."""
    return await gateway.bus.ask(EnableServer(tenant=caller.tenant, name=name, enabled=True), ServerView)


@router.post("/servers/{name}/disable", responses=fails(404, 409))
async def disable_server(name: NamePath, gateway: GatewayDependency, caller: Admin) -> ServerView:
    """Take a server's tools away and keep its configuration with its secrets."""
    return await gateway.bus.ask(EnableServer(tenant=caller.tenant, name=name, enabled=False), ServerView)
