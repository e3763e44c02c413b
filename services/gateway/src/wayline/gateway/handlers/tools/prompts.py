"""Prompts: templates that users of MCP clients choose by name."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Path, Response

from wayline.contracts import ids
from wayline.gateway.conditions import IfUnchanged, entity_tag
from wayline.gateway.handlers.shared.changing import Changeable, tagged
from wayline.gateway.handlers.shared.deleting import was_there
from wayline.gateway.handlers.shared.dependencies import Admin, Gateway, GatewayDependency, Reader
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails, tags
from wayline.gateway.paging import PageCursor, PageLimit, page_of
from wayline.gateway.shapes.prompts import Prompt, PromptBody, PromptDeleted, PromptPage
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/prompts", tags=["prompts"], route_class=StrictRoute)

PromptPath: TypeAlias = Annotated[str, Path(pattern=ids.NAME_PATTERN, examples=["review"])]


@router.get("", responses=fails(400))
async def list_prompts(
    gateway: GatewayDependency, caller: Reader, limit: PageLimit = 100, cursor: PageCursor = None
) -> PromptPage:
    """Page through the prompts, by name."""
    found = await gateway.prompts.listed(caller.tenant)
    page = page_of(found, limit=limit, cursor=cursor, key=lambda prompt: prompt.name)
    return PromptPage(prompts=page.items, next_cursor=page.next_cursor)


@router.get("/{name}", responses=tags(404))
async def get_prompt(name: PromptPath, gateway: GatewayDependency, caller: Reader, response: Response) -> Prompt:
    """Return one prompt as it was saved."""
    found = await _prompt(gateway, caller, name)
    return tagged(response, found, _tag(found))


@router.put("/{name}", responses=tags(400, 409, 412, 413))
async def put_prompt(
    *,
    name: PromptPath,
    prompt: PromptBody,
    gateway: GatewayDependency,
    caller: Admin,
    condition: IfUnchanged,
    response: Response,
) -> Prompt:
    """Save a prompt: clients of /mcp have it at once."""
    async with PROMPT.changing(gateway, caller, name, condition):
        saved = await gateway.prompts.put(caller.tenant, name, prompt)
    return tagged(response, saved, _tag(saved))


@router.delete("/{name}", responses=fails(404, 412))
async def delete_prompt(
    name: PromptPath, gateway: GatewayDependency, caller: Admin, condition: IfUnchanged
) -> PromptDeleted:
    """Delete a prompt."""
    async with PROMPT.changing(gateway, caller, name, condition):
        deleted = PromptDeleted(deleted=await gateway.prompts.delete(caller.tenant, name))
    return was_there(deleted, "prompt", name)


def _tag(prompt: Prompt) -> str:
    return entity_tag(prompt.model_dump(mode="json"))


async def _prompt(gateway: Gateway, caller: Caller, name: str) -> Prompt:
    return await gateway.prompts.get(caller.tenant, name)


PROMPT = Changeable("prompt", _prompt, _tag)
