"""Ask a connected server for its resources and prompts, as JSON of the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wayline.tool_registry.connection.offered_tools import every_page

if TYPE_CHECKING:
    from mcp import Client
    from pydantic import BaseModel


async def list_resources(client: Client) -> dict[str, Any]:
    """Return a server's resources and templates; none where it has no such capability."""
    if not client.server_capabilities.resources:
        return {"resources": [], "templates": []}
    resources = await every_page(client.list_resources, "resources")
    return {"resources": [_json(one) for one in resources], "templates": await _templates(client)}


async def _templates(client: Client) -> list[dict[str, Any]]:
    from mcp import MCPError
    from mcp_types import METHOD_NOT_FOUND

    try:
        found = await every_page(client.list_resource_templates, "resource_templates")
    except MCPError as error:
        # Many servers with resources know no templates.
        if error.code != METHOD_NOT_FOUND:
            raise
        return []
    return [_json(one) for one in found]


async def read_resource(client: Client, uri: str) -> dict[str, Any]:
    """Return what a resource holds."""
    return _json(await client.read_resource(uri))


async def list_prompts(client: Client) -> dict[str, Any]:
    """Return a server's prompts; none where it has no such capability."""
    if not client.server_capabilities.prompts:
        return {"prompts": []}
    return {"prompts": [_json(one) for one in await every_page(client.list_prompts, "prompts")]}


async def fill_prompt(client: Client, prompt: str, arguments: dict[str, str]) -> dict[str, Any]:
    """Return the messages of a prompt."""
    return _json(await client.get_prompt(prompt, arguments))


def _json(value: BaseModel) -> dict[str, Any]:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)
