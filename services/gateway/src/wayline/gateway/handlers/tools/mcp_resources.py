"""Resources and prompts of MCP servers: listed, read and filled in."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from wayline.contracts.server_logins import UserId
from wayline.contracts.server_resources import (
    FilledPrompt,
    FillServerPrompt,
    ListServerPrompts,
    ListServerResources,
    ReadServerResource,
    ResourceContents,
    ServerPrompts,
    ServerResources,
)
from wayline.gateway.handlers.shared.dependencies import GatewayDependency, Reader, Writer, acting_as
from wayline.gateway.handlers.tools.mcp_servers import NamePath
from wayline.gateway.openapi import fails
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/mcp", tags=["mcp servers"], route_class=StrictRoute)

ANSWER_WITHIN_S = 65.0
"""Longer than most servers are given for an answer."""


class PromptValues(BaseModel):
    """What a prompt is filled in with."""

    model_config = ConfigDict(extra="forbid")

    arguments: dict[str, str] = Field(default={}, max_length=100, examples=[{"length": "short"}])
    user_id: UserId | None = Field(default=None, description="As whom, where each user logs in to the server.")


@router.get("/servers/{name}/resources", responses=fails(404, 409))
async def list_server_resources(name: NamePath, gateway: GatewayDependency, caller: Reader) -> ServerResources:
    """Return the resources of a server and the templates of their addresses."""
    request = ListServerResources(tenant=caller.tenant, name=name)
    return await gateway.bus.ask(request, ServerResources, timeout_s=ANSWER_WITHIN_S)


@router.get("/servers/{name}/resources/read", responses=fails(404, 409))
async def read_server_resource(
    name: NamePath,
    uri: Annotated[str, Query(min_length=1, max_length=8_000, examples=["file:///srv/notes.md"])],
    gateway: GatewayDependency,
    caller: Writer,
    user_id: Annotated[UserId | None, Query(description="As whom, where each user logs in to the server.")] = None,
) -> ResourceContents:
    """Return what a resource holds; needs the scope `write`, as a call of a tool does."""
    request = ReadServerResource(tenant=caller.tenant, name=name, uri=uri, user_id=acting_as(caller, user_id))
    return await gateway.bus.ask(request, ResourceContents, timeout_s=ANSWER_WITHIN_S)


@router.get("/servers/{name}/prompts", responses=fails(404, 409))
async def list_server_prompts(name: NamePath, gateway: GatewayDependency, caller: Reader) -> ServerPrompts:
    """Return the prompts of a server with their arguments."""
    request = ListServerPrompts(tenant=caller.tenant, name=name)
    return await gateway.bus.ask(request, ServerPrompts, timeout_s=ANSWER_WITHIN_S)


@router.post("/servers/{name}/prompts/{prompt}", responses=fails(404, 409))
async def fill_server_prompt(
    name: NamePath,
    prompt: Annotated[str, Path(max_length=500)],
    values: PromptValues,
    gateway: GatewayDependency,
    caller: Writer,
) -> FilledPrompt:
    """Return the messages of a prompt, filled in; needs the scope `write`, as a call of a tool does."""
    request = FillServerPrompt(
        tenant=caller.tenant,
        name=name,
        prompt=prompt,
        arguments=values.arguments,
        user_id=acting_as(caller, values.user_id),
    )
    return await gateway.bus.ask(request, FilledPrompt, timeout_s=ANSWER_WITHIN_S)
