"""What the registry does with each message about servers' resources and prompts."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from dataclasses import dataclass
from functools import partial
from typing import Any

from wayline.contracts.errors import Conflict, NotFound, Reject, Unavailable
from wayline.contracts.server_resources import (
    FilledMessage,
    FilledPrompt,
    FillServerPrompt,
    ListServerPrompts,
    ListServerResources,
    PromptArgument,
    ReadServerResource,
    ResourceContents,
    ResourcePart,
    ResourceTemplate,
    ServerPrompt,
    ServerPrompts,
    ServerResource,
    ServerResources,
)
from wayline.tool_registry.connection import server_resources
from wayline.tool_registry.definitions.visible_text import visible
from wayline.tool_registry.errors import CallError, NeedsLogin, Unusable
from wayline.tool_registry.servers.mcp_server import McpServer
from wayline.tool_registry.settings import Settings
from wayline.tool_registry.tenant_servers.mcp_servers import McpServers
from wayline.tool_registry.tenant_servers.running_servers import TenantServers
from wayline.tool_registry.tenant_servers.server_table import ServerTable

LISTED_MAX = 1_000
"""Of resources, of templates and of prompts, each."""
TEXT_CHARS = 1_000
"""Of a name, a title or a description."""
URI_CHARS = 4_096
ARGUMENTS_MAX = 100
"""Of a prompt."""


@dataclass(frozen=True)
class ResourceHandlers:
    """One coroutine a message."""

    table: ServerTable
    servers: McpServers
    of_tenants: TenantServers
    settings: Settings

    async def list_resources(self, ask: ListServerResources) -> ServerResources:
        """List a server's resources and templates, as the tenant sees them."""
        server = await self._server(ask.tenant, ask.name)
        found = await self._answer(server.ask(server_resources.list_resources), of=server.name)
        resources, templates = found["resources"], found["templates"]
        return ServerResources(
            resources=tuple(_resource(one) for one in resources[:LISTED_MAX]),
            templates=tuple(
                ResourceTemplate(
                    uri_template=_text(one, "uriTemplate", at_most=URI_CHARS),
                    mime_type=_text(one, "mimeType"),
                    **_about(one),
                )
                for one in templates[:LISTED_MAX]
            ),
            resources_total=len(resources),
            templates_total=len(templates),
        )

    async def read(self, ask: ReadServerResource) -> ResourceContents:
        """Read a resource, as the user where each user logs in."""
        server = await self._server(ask.tenant, ask.name)
        question = partial(server_resources.read_resource, uri=ask.uri)
        found = await self._answer(server.ask_as(ask.user_id, question), of=server.name)
        parts = [
            ResourcePart(
                uri=one["uri"], mime_type=one.get("mimeType", ""), text=one.get("text"), base64=one.get("blob")
            )
            for one in found["contents"]
        ]
        return ResourceContents(contents=tuple(parts))

    async def list_prompts(self, ask: ListServerPrompts) -> ServerPrompts:
        """List a server's prompts, as the tenant sees them."""
        server = await self._server(ask.tenant, ask.name)
        found = (await self._answer(server.ask(server_resources.list_prompts), of=server.name))["prompts"]
        prompts = tuple(
            ServerPrompt(arguments=tuple(map(_argument, one.get("arguments", ())[:ARGUMENTS_MAX])), **_about(one))
            for one in found[:LISTED_MAX]
        )
        return ServerPrompts(prompts=prompts, prompts_total=len(found))

    async def fill_prompt(self, ask: FillServerPrompt) -> FilledPrompt:
        """Fill in a prompt, as the user where each user logs in."""
        server = await self._server(ask.tenant, ask.name)
        question = partial(server_resources.fill_prompt, prompt=ask.prompt, arguments=ask.arguments)
        found = await self._answer(server.ask_as(ask.user_id, question), of=server.name)
        messages = tuple(FilledMessage(role=one["role"], content=one["content"]) for one in found["messages"])
        return FilledPrompt(description=_text(found, "description"), messages=messages)

    async def _server(self, tenant: str, name: str) -> McpServer:
        """Return a server that a tenant has. Raises NotFound or Conflict."""
        own = self.servers.of_installation.get(name) or (await self.of_tenants.of(tenant)).get(name)
        if isinstance(own, McpServer):
            return own
        saved = await self.table.find(tenant, name)
        if saved is None:
            raise NotFound("server", name)
        if not saved.enabled:
            raise Conflict(f"{name} cannot be asked: it is disabled; `wayline mcp enable {name}` enables it")
        raise Conflict(f"{name} cannot be asked: {self.of_tenants.problem(tenant, name)}")

    async def _answer(self, asking: Awaitable[dict[str, Any]], *, of: str) -> dict[str, Any]:
        """Return a server's answer, where it is not too large. Raises Reject or Unavailable."""
        try:
            found = await asking
        except NeedsLogin as error:
            raise Reject(str(error), code=error.code, status=409) from None
        except Unusable as error:
            raise Reject(f"the server {of!r} refused: {error}", code="server_refused", status=422) from None
        except CallError as error:
            raise Unavailable(f"the server {of!r}", detail=str(error)) from None
        size, most = len(json.dumps(found, ensure_ascii=False).encode()), self.settings.result_max_bytes
        if size > most:
            why = f"the answer of {of!r} has {size} bytes, above the limit of {most}"
            raise Reject(why, code="answer_too_large", status=422)
        return found


def _resource(one: dict[str, Any]) -> ServerResource:
    return ServerResource(
        uri=_text(one, "uri", at_most=URI_CHARS),
        mime_type=_text(one, "mimeType"),
        size_bytes=one.get("size"),
        **_about(one),
    )


def _argument(one: dict[str, Any]) -> PromptArgument:
    return PromptArgument(
        name=_text(one, "name"), description=_text(one, "description"), required=one.get("required", False)
    )


def _about(one: dict[str, Any]) -> dict[str, Any]:
    return {"name": _text(one, "name"), "title": _text(one, "title"), "description": _text(one, "description")}


def _text(one: dict[str, Any], field: str, *, at_most: int = TEXT_CHARS) -> str:
    # Cut first: of millions of characters each would be looked at, and each that cannot be seen would become six.
    return visible(one.get(field, "")[:at_most])[:at_most]
