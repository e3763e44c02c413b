"""What the official conformance suite expects of a server, in place of Wayline's own tools and resources."""

from __future__ import annotations

import base64
import re
from typing import Any

import orjson
from mcp import MCPError
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp_types import (
    INVALID_PARAMS,
    BlobResourceContents,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    EmbeddedResource,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    SetLevelRequestParams,
    TextContent,
    TextResourceContents,
)

from wayline.gateway.handlers.mcp.server import described
from wayline.gateway.handlers.mcp.subscriptions import Subscriptions

from .fixture_tools import IMAGE, PIXEL, TOOLS, ask, call_tool, question

Context = ServerRequestContext[Any]
TEXT, BINARY = "test://static-text", "test://static-binary"
_TEMPLATE = re.compile(r"test://template/([^/]+)/data")


def make_fixture(_: Any, __: Any, subscriptions: Subscriptions) -> Server[Any]:
    """Return the server; it goes where `make_server` puts Wayline's own."""
    server = Server[Any](
        "wayline-conformance",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_resource_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=subscriptions.subscribe,
        on_unsubscribe_resource=subscriptions.unsubscribe,
        on_subscriptions_listen=subscriptions.listen,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_set_logging_level=set_level,
    )
    sealing = RequestStateBoundary(
        RequestStateSecurity(keys=[b"a key for this suite, of 32 bytes"]), default_audience="x"
    )
    server.middleware = [described, sealing]
    return server


async def list_tools(*_: Any) -> ListToolsResult:
    return ListToolsResult(tools=TOOLS)


async def list_resources(*_: Any) -> ListResourcesResult:
    listed = [
        Resource(uri=TEXT, name="text", description="A text.", mime_type="text/plain"),
        Resource(uri=BINARY, name="binary", description="An image.", mime_type="image/png"),
    ]
    return ListResourcesResult(resources=listed)


async def list_resource_templates(*_: Any) -> ListResourceTemplatesResult:
    template = ResourceTemplate(name="template", uri_template="test://template/{id}/data", mime_type="application/json")
    return ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(_: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
    uri = params.uri
    if uri == TEXT:
        words = "This is the content of the static text resource."
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type="text/plain", text=words)])
    if uri == BINARY:
        assert base64.b64decode(PIXEL)
        return ReadResourceResult(contents=[BlobResourceContents(uri=uri, mime_type="image/png", blob=PIXEL)])
    if found := _TEMPLATE.fullmatch(uri):
        data = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
        body = orjson.dumps(data).decode()
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type="application/json", text=body)])
    raise MCPError(INVALID_PARAMS, "there is no such resource", {"uri": uri})


def _prompt(name: str, *arguments: str) -> Prompt:
    needed = [PromptArgument(name=one, description=f"The {one}.", required=True) for one in arguments]
    return Prompt(name=name, description=f"The suite's {name}.", arguments=needed)


async def list_prompts(*_: Any) -> ListPromptsResult:
    return ListPromptsResult(
        prompts=[
            _prompt("test_simple_prompt"),
            _prompt("test_prompt_with_arguments", "arg1", "arg2"),
            _prompt("test_prompt_with_embedded_resource", "resourceUri"),
            _prompt("test_prompt_with_image"),
            _prompt("test_input_required_result_prompt"),
        ]
    )


def _says(*contents: Any) -> GetPromptResult:
    return GetPromptResult(messages=[PromptMessage(role="user", content=content) for content in contents])


def _text(words: str) -> TextContent:
    return TextContent(type="text", text=words)


async def get_prompt(_: Context, params: GetPromptRequestParams) -> GetPromptResult | InputRequiredResult:
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            return _says(_text("This is a simple prompt for testing."))
        case "test_prompt_with_arguments":
            return _says(_text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"))
        case "test_prompt_with_embedded_resource":
            words = "Embedded resource content for testing."
            resource = TextResourceContents(uri=given["resourceUri"], mime_type="text/plain", text=words)
            embedded = EmbeddedResource(type="resource", resource=resource)
            return _says(embedded, _text("Please process the embedded resource above."))
        case "test_prompt_with_image":
            return _says(IMAGE, _text("Please analyze the image above."))
        case "test_input_required_result_prompt":
            if "user_context" not in (params.input_responses or {}):
                return ask({"user_context": question("What context should the prompt use?", context="string")})
            return _says(_text("With the context that was given."))
        case name:
            raise MCPError(INVALID_PARAMS, f"no prompt is called {name!r}")


async def complete(_: Context, params: CompleteRequestParams) -> CompleteResult:
    known = ("paris", "park", "party")
    fitting = [one for one in known if one.startswith(params.argument.value)]
    return CompleteResult(completion=Completion(values=fitting, total=len(fitting), has_more=False))


async def set_level(_: Context, __: SetLevelRequestParams) -> EmptyResult:
    return EmptyResult()
