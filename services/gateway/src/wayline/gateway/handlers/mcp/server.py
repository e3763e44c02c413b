"""The MCP server: what each method of the protocol answers, for the tenant of the request's key."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from mcp import MCPError
from mcp.server import Server
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from opentelemetry import trace

from wayline.contracts.errors import Bug, Retry, WaylineError
from wayline.gateway.errors import CallKeyReused, JobIdConflict, KeyReused
from wayline.gateway.handlers.mcp.call_ids import CallIds
from wayline.gateway.handlers.mcp.call_tool import ToolCalls
from wayline.gateway.handlers.mcp.client_session import session_of
from wayline.gateway.handlers.mcp.exchange import SCHEMA
from wayline.gateway.handlers.mcp.offers import Offers
from wayline.gateway.handlers.mcp.prompts import PromptTemplates
from wayline.gateway.handlers.mcp.requests import IDEMPOTENCY_KEY, KEY_MAX, USER, USER_MAX, McpRequest
from wayline.gateway.handlers.mcp.resources import Resources
from wayline.gateway.handlers.mcp.results import failure, refusal
from wayline.gateway.handlers.mcp.run_agent import AgentRuns
from wayline.gateway.handlers.mcp.subscriptions import Subscriptions
from wayline.gateway.handlers.mcp.tool_rights import AGENT_TOOLS
from wayline.gateway.handlers.mcp.user_questions import UserQuestions
from wayline.gateway.handlers.shared.dependencies import Gateway, acting_as
from wayline.gateway.shapes.body import ONE_LINE
from wayline.store import PostgresUnavailable
from wayline.telemetry import names

NAME = "wayline"
KEY_CONFLICTS = frozenset({"tool_key_conflict", JobIdConflict.code, KeyReused.code})
"""Codes of errors that say that a key stands for something else."""
WITHHELD = "agent {!r} is not run over MCP: set its `over_mcp` to true to allow it"
INSTRUCTIONS = (
    "Wayline runs AI agents as durable jobs. `run_agent` gives an agent a task and answers when it has ended; a job "
    "that takes longer goes on, and `wait_for_job` fetches its answer. `search_knowledge` finds passages in the "
    "tenant's documents. What a job did and cost is the resource job://{job_id}/trace."
)

# One is made for each message; its start and end are no news.
logging.getLogger("mcp.server.streamable_http_manager").setLevel(logging.WARNING)


def make_server(gateway: Gateway, offers: Offers, subscriptions: Subscriptions) -> Server[Any]:
    """Return the server, which keeps nothing of a client between two messages."""
    methods = Methods(gateway, offers)
    server = Server[Any](
        NAME,
        version=version("wayline-gateway"),
        title="Wayline",
        instructions=INSTRUCTIONS,
        # Without it the library lists all tools before each call, to look at the schema of one.
        get_tool_input_schema=lambda _: SCHEMA.get(),
        on_list_tools=methods.list_tools,
        on_call_tool=methods.call_tool,
        on_list_resources=methods.list_resources,
        on_list_resource_templates=methods.list_resource_templates,
        on_read_resource=methods.read_resource,
        on_subscribe_resource=subscriptions.subscribe,
        on_unsubscribe_resource=subscriptions.unsubscribe,
        on_subscriptions_listen=subscriptions.listen,
        on_list_prompts=methods.list_prompts,
        on_get_prompt=methods.get_prompt,
        on_completion=methods.complete,
    )
    # In place of the library's own: that one makes the client's trace the parent of our spans.
    server.middleware = [described]
    return server


class Methods:
    """One coroutine for each method."""

    def __init__(self, gateway: Gateway, offers: Offers) -> None:
        self._offers = offers
        self._tools = ToolCalls(gateway)
        self._agents = AgentRuns(gateway)
        self._resources = Resources(gateway)
        self._prompts = PromptTemplates(gateway, self._resources)

    async def list_tools(self, ctx: ServerRequestContext[Any], _: PaginatedRequestParams | None) -> ListToolsResult:
        """List the tools that the key may use."""
        request = as_request(ctx)
        return ListToolsResult(tools=await self._offers.listed(request.caller, objects_only=request.objects_only))

    async def call_tool(
        self, ctx: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool, or run an agent. What goes wrong is the tool's result, so that a model can read it."""
        request = as_request(ctx)
        arguments = params.arguments or {}
        try:
            if params.name in AGENT_TOOLS:
                if await self._offers.withholds(request.caller, str(arguments.get("agent"))):
                    return failure(WITHHELD.format(arguments["agent"]), code="agent_withheld")
                return await self._agents.call(request, params.name, arguments)
            offer = await self._offers.find(request.caller, params.name)
            if offer is None:
                raise MCPError(
                    INVALID_PARAMS, f"no tool is called {params.name!r} here: tools/list names those there are"
                )
            typed = await self._offers.has_output_schema(request, params.name)
            return await self._tools.call(request, offer, params, has_output_schema=typed)
        except WaylineError as error:
            if isinstance(error, Bug):
                raise
            if error.code in KEY_CONFLICTS:
                # No result of a tool: its client is at fault, not what a model wrote.
                raise CallKeyReused(named_by=request.named_by) from error
            return refusal(error)

    async def list_resources(
        self, ctx: ServerRequestContext[Any], params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        """List the tenant's documents, page by page."""
        return await self._resources.listed(as_request(ctx), params.cursor if params else None)

    async def list_resource_templates(
        self, ctx: ServerRequestContext[Any], _: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        """List the kinds of resources."""
        return self._resources.templates()

    async def read_resource(
        self, ctx: ServerRequestContext[Any], params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        """Read a resource by its URI."""
        return await self._resources.read(as_request(ctx), params.uri)

    async def list_prompts(self, ctx: ServerRequestContext[Any], _: PaginatedRequestParams | None) -> ListPromptsResult:
        """List the tenant's prompts."""
        return await self._prompts.listed(as_request(ctx))

    async def get_prompt(self, ctx: ServerRequestContext[Any], params: GetPromptRequestParams) -> GetPromptResult:
        """Return a prompt, completed with the values of its arguments."""
        return await self._prompts.get(as_request(ctx), params.name, params.arguments or {})

    async def complete(self, ctx: ServerRequestContext[Any], params: CompleteRequestParams) -> CompleteResult:
        """Propose values of a prompt's argument."""
        return CompleteResult(completion=await self._prompts.completion(as_request(ctx), params))


async def described(ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
    """Say on the request's span what is asked; an error of ours becomes one of the protocol, without its traceback."""
    span = trace.get_current_span()
    if not span.is_recording():
        # A notification is answered before it is handled.
        span = trace.INVALID_SPAN
    span.set_attribute(names.MCP_METHOD, ctx.method)
    span.set_attribute(names.MCP_PROTOCOL, ctx.protocol_version)
    if ctx.method == "tools/call" and isinstance(name := (ctx.params or {}).get("name"), str):
        span.set_attribute(names.GEN_AI_TOOL_NAME, name[:128])
    try:
        return await call_next(ctx)
    except MCPError as error:
        span.set_attribute(names.ERROR_TYPE, str(error.code))
        raise
    except PostgresUnavailable as error:
        span.set_attribute(names.ERROR_TYPE, error.code)
        # Not its own words: they say where the database is.
        raise MCPError(INTERNAL_ERROR, f"the database is away: {error.why}; try again") from error
    except WaylineError as error:
        span.set_attribute(names.ERROR_TYPE, error.code)
        raise MCPError(_code(error), str(error), error.problem().model_dump(exclude_none=True)) from error


def _code(error: WaylineError) -> int:
    return INTERNAL_ERROR if isinstance(error, Retry | Bug) else INVALID_PARAMS


def as_request(ctx: ServerRequestContext[Any]) -> McpRequest:
    """Return what the methods need to know of a request."""
    http = ctx.request
    assert http is not None, "this server is reached over HTTP only"
    caller, session = http.state.identity, session_of(http)
    key, user_id = _key(ctx.meta), acting_as(caller, _user(ctx.meta))
    by_key = CallIds.of_key(caller.tenant, key, user_id) if key is not None else None
    by_request = CallIds.of_request(caller.tenant, session, ctx.request_id)
    return McpRequest(
        caller=caller,
        ids=by_key or by_request or CallIds.fresh(),
        named_by=f"_meta {IDEMPOTENCY_KEY!r} {key!r}"
        if by_key
        else f"the request id {ctx.request_id!r} of this session",
        progress=ctx.session.report_progress,
        questions=UserQuestions(ctx),
        traced_from=http.state.caller,
        user_id=user_id,
        closes_to_cancel=by_request is None,
        objects_only=ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS,
    )


def _key(meta: Mapping[str, Any] | None) -> str | None:
    key = (meta or {}).get(IDEMPOTENCY_KEY)
    if key is None:
        return None
    if not isinstance(key, str) or not 0 < len(key) <= KEY_MAX:
        raise MCPError(INVALID_PARAMS, f"_meta {IDEMPOTENCY_KEY!r} is a text of at most {KEY_MAX} characters")
    return key


def _user(meta: Mapping[str, Any] | None) -> str | None:
    user_id = (meta or {}).get(USER)
    if user_id is None:
        return None
    if not isinstance(user_id, str) or not 0 < len(user_id) <= USER_MAX or not re.fullmatch(ONE_LINE, user_id):
        raise MCPError(INVALID_PARAMS, f"_meta {USER!r} is one line of at most {USER_MAX} characters")
    return user_id
