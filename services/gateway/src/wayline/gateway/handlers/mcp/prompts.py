"""Prompts: a tenant's templates, completed with the values that a client's user gave."""

from __future__ import annotations

from collections.abc import Mapping

from mcp import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CompleteRequestParams,
    Completion,
    EmbeddedResource,
    GetPromptResult,
    ListPromptsResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    PromptReference,
    TextContent,
)

from wayline.contracts.errors import NotFound
from wayline.gateway.handlers.mcp.requests import McpRequest
from wayline.gateway.handlers.mcp.resources import Resources
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.shapes import prompts as saved

PROPOSALS_MAX = 100
"""What the protocol allows in one answer."""


class PromptTemplates:
    """Lists and completes prompts for MCP clients."""

    def __init__(self, gateway: Gateway, resources: Resources) -> None:
        self._prompts = gateway.prompts
        self._resources = resources

    async def listed(self, request: McpRequest) -> ListPromptsResult:
        """List the tenant's prompts with their arguments."""
        found = await self._prompts.listed(request.caller.tenant)
        return ListPromptsResult(prompts=[_offered(one.name, one.prompt) for one in found])

    async def get(self, request: McpRequest, name: str, values: Mapping[str, str]) -> GetPromptResult:
        """Return a prompt's messages. Raises MCPError for one that there is not, Reject for values it does not take."""
        prompt = await self._find(request, name)
        messages = [await self._message(request, one) for one in saved.completed(prompt, values)]
        return GetPromptResult(description=prompt.description or None, messages=messages)

    async def completion(self, request: McpRequest, params: CompleteRequestParams) -> Completion:
        """Propose values of an argument; of what is no prompt, none."""
        if not isinstance(params.ref, PromptReference):
            return Completion(values=[], total=0, has_more=False)
        prompt = await self._find(request, params.ref.name)
        found = saved.proposals(prompt, params.argument.name, params.argument.value)
        return Completion(values=found[:PROPOSALS_MAX], total=len(found), has_more=len(found) > PROPOSALS_MAX)

    async def _find(self, request: McpRequest, name: str) -> saved.PromptBody:
        try:
            return (await self._prompts.get(request.caller.tenant, name)).prompt
        except NotFound:
            message = f"no prompt is called {name[:200]!r} here: prompts/list names those there are"
            raise MCPError(INVALID_PARAMS, message) from None

    async def _message(self, request: McpRequest, message: saved.PromptMessage) -> PromptMessage:
        if message.resource is None:
            return PromptMessage(role=message.role, content=TextContent(type="text", text=message.text or ""))
        read = await self._resources.read(request, message.resource)
        return PromptMessage(role=message.role, content=EmbeddedResource(type="resource", resource=read.contents[0]))


def _offered(name: str, prompt: saved.PromptBody) -> Prompt:
    arguments = [
        PromptArgument(name=one.name, description=one.description or None, required=one.required)
        for one in prompt.arguments
    ]
    return Prompt(name=name, title=prompt.title or None, description=prompt.description or None, arguments=arguments)
