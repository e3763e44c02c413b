"""Results of tools in the form of the protocol."""

from __future__ import annotations

from typing import Any, Final

from mcp_types import CallToolResult, ContentBlock, ImageContent, TextContent
from pydantic_core import from_json

from wayline.contracts.errors import WaylineError
from wayline.contracts.tool_details import WholeResult
from wayline.contracts.tools import ToolDefinition, ToolReply
from wayline.store import PostgresUnavailable

CITATIONS: Final = "wayline/citations"
COST: Final = "wayline/cost_usd"
ERROR: Final = "wayline/error"
EFFECT: Final = "wayline/effect"
UNTRUSTED: Final = "wayline/untrusted"
"""Names in `_meta`. The first two are those that our registry reads in the results of servers."""
UNTYPED: Final = "no_structured_content"
"""The code of a result without the content that its tool has promised in its output schema: the tool has run."""


def refusal(error: WaylineError) -> CallToolResult:
    """Return an error as the result of a tool, for the model to read."""
    if isinstance(error, PostgresUnavailable):
        # Not its own words: they say where the database is.
        return failure(f"the database is away: {error.why}; try again", code="unavailable")
    return failure(str(error), code=error.code)


def failure(message: str, *, code: str, **meta: Any) -> CallToolResult:
    """Return the result of a call that did not succeed."""
    return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True, _meta={ERROR: code, **meta})


def result_of(
    reply: ToolReply, tool: ToolDefinition, *, has_output_schema: bool = False, objects_only: bool = False
) -> CallToolResult:
    """Return the registry's reply as the result of a tool: as its server gave it, where that is known.

    With `objects_only` structured content that is no object is wrapped in one.
    """
    meta: dict[str, Any] = {**(reply.whole.meta if reply.whole else {}), EFFECT: reply.effect.value}
    if tool.untrusted or reply.strangers:
        meta[UNTRUSTED] = True
    if reply.cost_usd is not None:
        meta[COST] = str(reply.cost_usd)
    if reply.status == "unknown":
        message = f"nobody knows whether this call of {tool.name} took effect: look before you call it again"
        return failure(message, code="unknown", **meta)
    if reply.input is not None:
        message = (
            f"{tool.name} asks a person something, which only a job can wait for: "
            "have an agent that may use it do this, with run_agent"
        )
        if reply.input.after_cancel is not None:
            message += f". Its question was cancelled, and it ended with: {reply.input.after_cancel!r}"
        return failure(message, code="needs_input", **meta)
    if reply.error is not None and reply.whole is not None and reply.whole.blocks:
        return _as_given(reply.whole, is_error=True, meta={ERROR: reply.error.code, **meta}, objects_only=objects_only)
    if reply.error is not None:
        return failure(reply.error.message, code=reply.error.code, **meta)
    if reply.citations:
        meta[CITATIONS] = [citation.model_dump(mode="json") for citation in reply.citations]
    if reply.whole is not None:
        # To a client that was told what a result looks like, one without that is an error of the protocol.
        untyped = has_output_schema and reply.whole.structured is None
        meta |= {ERROR: UNTYPED} if untyped else {}
        return _as_given(reply.whole, is_error=untyped, meta=meta, objects_only=objects_only)
    content: list[ContentBlock] = [TextContent(type="text", text=reply.content)]
    content += [
        ImageContent(type="image", data=image.content_base64, mime_type=image.media_type)
        for image in reply.images
        if image.content_base64
    ]
    return CallToolResult(content=content, _meta=meta)


def _as_given(whole: WholeResult, *, is_error: bool, meta: dict[str, Any], objects_only: bool) -> CallToolResult:
    result: dict[str, Any] = {"content": whole.blocks, "isError": is_error, "_meta": meta}
    if whole.structured is not None:
        structured = from_json(whole.structured)
        result["structuredContent"] = (
            {"result": structured} if objects_only and not isinstance(structured, dict) else structured
        )
    return CallToolResult.model_validate(result, by_name=False)
