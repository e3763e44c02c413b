"""The tools that the official conformance suite calls."""

from __future__ import annotations

import asyncio
import base64
import io
import wave
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    CallToolRequestParams,
    CallToolResult,
    CreateMessageRequest,
    CreateMessageResult,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    TextContent,
    TextResourceContents,
    Tool,
)

Context = ServerRequestContext[Any]
Answer = CallToolResult | InputRequiredResult
Call = Callable[[Context, CallToolRequestParams], Awaitable[Answer]]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
PAUSE_S = 0.05
"""Between two notifications, as the suite wants it."""


def _silence() -> str:
    sound = io.BytesIO()
    with wave.open(sound, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(8_000)
        file.writeframes(b"\x80" * 8)
    return base64.b64encode(sound.getvalue()).decode()


def text(words: str, **more: Any) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=words)], **more)


def _resource(uri: str, words: str, media_type: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=media_type, text=words))


IMAGE = ImageContent(type="image", data=PIXEL, mime_type="image/png")
CONSTANT = {
    "test_simple_text": text("This is a simple text response for testing."),
    "test_image_content": CallToolResult(content=[IMAGE]),
    "test_audio_content": CallToolResult(content=[AudioContent(type="audio", data=_silence(), mime_type="audio/wav")]),
    "test_embedded_resource": CallToolResult(
        content=[_resource("test://embedded-resource", "This is an embedded resource content.")]
    ),
    "test_multiple_content_types": CallToolResult(
        content=[
            TextContent(type="text", text="Multiple content types test:"),
            IMAGE,
            _resource("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
        ]
    ),
    "test_error_handling": text("This tool intentionally returns an error for testing", is_error=True),
    "test_streaming_elicitation": text("nothing is asked on the stream"),
    "json_schema_2020_12_tool": text("ok"),
    "test_custom_header_tool": text("ok"),
}


async def with_progress(ctx: Context, _: CallToolRequestParams) -> Answer:
    for progress in (0, 50, 100):
        await ctx.session.report_progress(progress, 100)
        await asyncio.sleep(PAUSE_S)
    return text("done")


async def with_logging(ctx: Context, _: CallToolRequestParams) -> Answer:
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.session.send_log_message("info", words, related_request_id=str(ctx.request_id))  # pyright: ignore[reportDeprecated]
        await asyncio.sleep(PAUSE_S)
    return text("done")


async def needs_sampling(ctx: Context, _: CallToolRequestParams) -> Answer:
    if "sampling" not in capabilities(ctx):
        needed = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "this tool needs sampling", needed)
    return text("ok")


def capabilities(ctx: Context) -> Mapping[str, Any]:
    """Return what the client says it can do, of this request alone."""
    declared = (ctx.meta or {}).get(CLIENT_CAPABILITIES_META_KEY)
    return declared if isinstance(declared, Mapping) else {}


def question(message: str, **properties: str) -> dict[str, Any]:
    """Return a question to the client's user."""
    schema = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(properties),
    }
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def sampling(message: str, tokens: int) -> dict[str, Any]:
    """Return a question to the client's model."""
    messages = [{"role": "user", "content": {"type": "text", "text": message}}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": tokens}}


ROOTS: dict[str, Any] = {"method": "roots/list", "params": {}}
NAME = question("What is your name?", name="string")
CONFIRM = question("Please confirm", ok="boolean")


def ask(requests: dict[str, Any], state: str | None = None) -> InputRequiredResult:
    return InputRequiredResult.model_validate({"inputRequests": requests, "requestState": state})


def asking(requests: dict[str, Any], *, state: str | None = None, words: str = "all answered") -> Call:
    """Return a tool that asks until everything is answered."""

    async def call(_: Context, params: CallToolRequestParams) -> Answer:
        answers = params.input_responses or {}
        if not set(requests) <= set(answers) or not all(map(_is_answer, answers.values())):
            return ask(requests, state)
        if params.request_state != state:
            raise MCPError(INVALID_PARAMS, "this is not the state of this call")
        return text(f"{words}: {[_plain(answers[name]) for name in requests]}")

    return call


def _is_answer(answer: Any) -> bool:
    fields = _plain(answer)
    return not ("action" in fields and fields["action"] == "accept" and not isinstance(fields.get("content"), dict))


def _plain(answer: Any) -> dict[str, Any]:
    return answer.model_dump(by_alias=True, exclude_none=True) if hasattr(answer, "model_dump") else dict(answer)


def form(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def one_of(*choices: tuple[str, str]) -> list[dict[str, str]]:
    return [{"const": value, "title": title} for value, title in choices]


OPTIONS = ["option1", "option2", "option3"]
TITLED = one_of(("value1", "First Option"), ("value2", "Second Option"), ("value3", "Third Option"))
ALL_DEFAULTS = form(
    name={"type": "string", "default": "John Doe"},
    age={"type": "integer", "default": 30},
    score={"type": "number", "default": 95.5},
    status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    verified={"type": "boolean", "default": True},
)
ALL_ENUMS = form(
    untitledSingle={"type": "string", "enum": OPTIONS},
    titledSingle={"type": "string", "oneOf": TITLED},
    legacyEnum={"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
    untitledMulti={"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    titledMulti={"type": "array", "items": {"anyOf": TITLED}},
)


def asking_meanwhile(schema: dict[str, Any]) -> Call:
    """Return a tool that asks the client's user while it runs, as servers before 2026-07-28 do."""

    async def call(ctx: Context, params: CallToolRequestParams) -> Answer:
        message = (params.arguments or {}).get("message", "Please fill this in")
        answered = await ctx.session.elicit_form(message, schema, ctx.request_id)
        return text(f"User response: {answered.action}, {answered.content}")

    return call


async def ask_model(ctx: Context, params: CallToolRequestParams) -> Answer:
    asked = sampling((params.arguments or {})["prompt"], 100)
    metadata = ServerMessageMetadata(related_request_id=ctx.request_id)
    answered = await ctx.session.send_request(
        CreateMessageRequest.model_validate(asked), CreateMessageResult, metadata=metadata
    )
    return text(f"LLM response: {answered.content}")


async def two_rounds(_: Context, params: CallToolRequestParams) -> Answer:
    answers = params.input_responses or {}
    if "step1" in answers and params.request_state == "round 1":
        return ask({"step2": question("Step 2: What is your favorite color?", color="string")}, "round 2")
    if "step2" in answers and params.request_state == "round 2":
        return text("both rounds are over")
    return ask({"step1": question("Step 1: What is your name?", name="string")}, "round 1")


async def what_the_client_can(ctx: Context, params: CallToolRequestParams) -> Answer:
    if params.input_responses:
        return text("answered")
    able = capabilities(ctx)
    requests = {"elicitation": NAME, "sampling": sampling("Say hello", 50), "roots": ROOTS}
    return ask({name: request for name, request in requests.items() if name in able})


CALLS: dict[str, Call] = {
    "test_tool_with_progress": with_progress,
    "test_tool_with_logging": with_logging,
    "test_logging_tool": with_logging,
    "test_missing_capability": needs_sampling,
    "test_input_required_result_elicitation": asking({"user_name": NAME}, words="Hello"),
    "test_input_required_result_sampling": asking(
        {"capital_question": sampling("What is the capital of France?", 100)}
    ),
    "test_input_required_result_list_roots": asking({"client_roots": ROOTS}),
    "test_input_required_result_request_state": asking({"confirm": CONFIRM}, state="a state", words="state-ok"),
    "test_input_required_result_multiple_inputs": asking(
        {"user_name": NAME, "greeting": sampling("Generate a greeting", 50), "client_roots": ROOTS}, state="a state"
    ),
    "test_input_required_result_multi_round": two_rounds,
    "test_input_required_result_tampered_state": asking({"confirm": CONFIRM}, state="a state"),
    "test_input_required_result_capabilities": what_the_client_can,
    "test_sampling": ask_model,
    "test_elicitation": asking_meanwhile(form(username={"type": "string"}, email={"type": "string"})),
    "test_elicitation_sep1034_defaults": asking_meanwhile(ALL_DEFAULTS),
    "test_elicitation_sep1330_enums": asking_meanwhile(ALL_ENUMS),
}
EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
SCHEMAS: dict[str, dict[str, Any]] = {
    "test_custom_header_tool": {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "query": {"type": "string"}},
    },
    "json_schema_2020_12_tool": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "place", "type": "object", "properties": {"town": {"type": "string"}}}},
        "properties": {"by": {"enum": ["post", "wire"]}, "to": {"$ref": "#/$defs/address"}, "line": {"type": "string"}},
        "allOf": [{"anyOf": [{"required": ["to"]}, {"required": ["line"]}]}],
        "if": {"properties": {"by": {"const": "post"}}},
        "then": {"required": ["to"]},
        "else": {"required": ["line"]},
        "additionalProperties": False,
    },
}
TOOLS = [
    Tool(name=name, description=f"The suite's {name}.", input_schema=SCHEMAS.get(name, EMPTY))
    for name in sorted({*CONSTANT, *CALLS})
]


async def call_tool(ctx: Context, params: CallToolRequestParams) -> Answer:
    """Call a tool of the suite."""
    if params.name in CONSTANT:
        return CONSTANT[params.name]
    if params.name not in CALLS:
        raise MCPError(INVALID_PARAMS, f"no tool is called {params.name!r}")
    return await CALLS[params.name](ctx, params)
