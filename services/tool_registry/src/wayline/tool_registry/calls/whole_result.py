"""A result as its server gave it, for MCP clients, and its structured value, for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from wayline.contracts.tool_details import WholeResult
from wayline.tool_registry.calls.server_answers import STRUCTURED, whole_characters
from wayline.tool_registry.definitions.tool_details import passed_on

if TYPE_CHECKING:
    from mcp_types import CallToolResult

MEDIA_MAX_CHARS: Final = 8 * 1024 * 1024
"""In base64, of all images, sounds and files of one result; those beyond it are named."""
WRAPPED: Final = '{"result": '
"""Begins structured content that wraps a value because it is no object."""
ONLY_FOR_PEOPLE: Final = frozenset({"icons"})
"""Fields of a block that are not passed on: a client would fetch them from an address of a stranger's choice."""


def whole_result(result: CallToolResult, *, content: str | None = None) -> WholeResult:
    """Return all that a result holds; `content` stands in the place of one that is too large."""
    if content is not None:
        return WholeResult(blocks=({"type": "text", "text": content},), meta=passed_on(result.meta))
    room, blocks = MEDIA_MAX_CHARS, list[dict[str, Any]]()
    for block in result.content:
        size = _media_chars(block)
        if size > room:
            blocks.append({"type": "text", "text": f"[{block.type}, not shown: files of a result are above the limit]"})
            continue
        room -= size
        blocks.append(_fields(block))
    return WholeResult(blocks=tuple(blocks), structured=structured_json(result), meta=passed_on(result.meta))


def value_text(result: CallToolResult) -> str | None:
    """Return the structured value of a result as a program reads it: a text as it is, else JSON; None: it has none.

    A value that its server had to wrap, because it is no object, is taken out.
    """
    text = structured_json(result)
    if text is None or not _is_wrapped(result, text):
        return text
    inner = text[len(WRAPPED) : -1]
    return json.loads(inner) if inner.startswith('"') else inner


def structured_json(result: CallToolResult) -> str | None:
    """Return the structured content of a result as JSON; None: it has none."""
    kept = (result.meta or {}).get(STRUCTURED)
    if isinstance(kept, str):
        return kept
    return None if result.structured_content is None else as_json(result.structured_content)


def as_json(value: Any) -> str:
    """Return the JSON in which structured content is kept."""
    return whole_characters(json.dumps(value, ensure_ascii=False))


def _is_wrapped(result: CallToolResult, text: str) -> bool:
    if not text.startswith(WRAPPED):
        return False
    structured = result.structured_content
    if STRUCTURED in (result.meta or {}):
        structured = json.loads(text)
    return isinstance(structured, dict) and structured.keys() == {"result"}


def _media_chars(block: Any) -> int:
    data = getattr(block, "data", None) or getattr(getattr(block, "resource", None), "blob", None)
    return len(data) if isinstance(data, str) else 0


def _fields(model: Any) -> dict[str, Any]:
    """Return the fields that the protocol gives a block, or the resource in one."""
    dumped: Mapping[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    known = {field.alias or name for name, field in type(model).model_fields.items()} - ONLY_FOR_PEOPLE
    kept = {name: value for name, value in dumped.items() if name in known}
    if "resource" in kept and hasattr(model, "resource"):
        kept["resource"] = _fields(model.resource)
    if "_meta" in kept:
        kept["_meta"] = passed_on(kept["_meta"])
    return {name: value for name, value in kept.items() if name != "_meta" or value}
