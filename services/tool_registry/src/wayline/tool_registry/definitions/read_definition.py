"""What a model reads of a tool's definition: words that can be seen, each text no longer than a limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wayline.tool_registry.definitions.visible_text import without_hidden

DESCRIPTION_MAX_CHARS = 4_000
"""Of a tool's description, and of each text in its schema."""
READ_MAX_CHARS = 16 * DESCRIPTION_MAX_CHARS
"""Of a longer text no more is looked at, however few of its characters can be seen."""
CUT = " […]"
TEXTS = frozenset({"description", "title", "$comment"})
"""Keywords of a schema that are words for its reader, and decide nothing."""
BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords that hold schemas by names of the server's choice, which may be those of keywords."""
VALUES = frozenset({"const", "enum", "default", "examples"})
"""Keywords that hold values of arguments, which are no schemas: they stay, or a right argument would be wrong."""


def read_description(text: str | None) -> str:
    """Return a description as a model is given it."""
    whole = text or ""
    seen = without_hidden(whole[:READ_MAX_CHARS])
    if len(seen) <= DESCRIPTION_MAX_CHARS and len(whole) <= READ_MAX_CHARS:
        return seen
    return seen[: DESCRIPTION_MAX_CHARS - len(CUT)] + CUT


def read_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema whose texts are as a model is given them."""
    try:
        return _read_schema(schema)
    except RecursionError:
        # Deeper than anything that can be sent: the check of schemas refuses it and says so.
        return dict(schema)


def _read_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {keyword: _read(keyword, value) for keyword, value in schema.items()}


def _read(keyword: str, value: Any) -> Any:
    if keyword in VALUES:
        return value
    if keyword in TEXTS and isinstance(value, str):
        return read_description(value)
    if keyword in BY_NAME and isinstance(value, dict):
        return {name: _read_schema(one) if isinstance(one, dict) else one for name, one in value.items()}
    if isinstance(value, dict):
        return _read_schema(value)
    if isinstance(value, list):
        return [_read_schema(one) if isinstance(one, dict) else one for one in value]
    return value
