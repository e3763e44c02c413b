"""Prompts: templates that users of MCP clients choose by name."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Path

from wayline.contracts import ids
from wayline.gateway.handlers.shared.deleting import was_there
from wayline.gateway.handlers.shared.dependencies import Admin, GatewayDependency, Reader
from wayline.gateway.openapi import fails
from wayline.gateway.shapes.prompts import Prompt, PromptBody, PromptDeleted, PromptList
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/prompts", tags=["prompts"], route_class=StrictRoute)

PromptPath: TypeAlias = Annotated[str, Path(pattern=ids.NAME_PATTERN, examples=["review"])]


@router.get("", responses=fails())
async def list_prompts(gateway: GatewayDependency, caller: Reader) -> PromptList:
    """Return every prompt, by name."""
    return PromptList(prompts=tuple(await gateway.prompts.listed(caller.tenant)))


@router.get("/{name}", responses=fails(404))
async def get_prompt(name: PromptPath, gateway: GatewayDependency, caller: Reader) -> Prompt:
    """Return one prompt as it was saved."""
    return await gateway.prompts.get(caller.tenant, name)


@router.put("/{name}", responses=fails(400, 409, 413))
async def put_prompt(name: PromptPath, prompt: PromptBody, gateway: GatewayDependency, caller: Admin) -> Prompt:
    """Save a prompt: clients of /mcp have it at once."""
    return await gateway.prompts.put(caller.tenant, name, prompt)


@router.delete("/{name}", responses=fails(404))
async def delete_prompt(name: PromptPath, gateway: GatewayDependency, caller: Admin) -> PromptDeleted:
    """Delete a prompt."""
    deleted = PromptDeleted(deleted=await gateway.prompts.delete(caller.tenant, name))
    return was_there(deleted, "prompt", name)
