"""What a server says of its tool that only people and MCP clients need, as far as it can be passed on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from wayline.contracts.tool_details import ToolDetails
from wayline.tool_registry.definitions.read_definition import read_schema
from wayline.tool_registry.definitions.visible_text import one_line

if TYPE_CHECKING:
    from wayline.tool_registry.definitions.arguments import Arguments
    from wayline.tool_registry.definitions.listed_tool import ListedTool

TITLE_MAX_CHARS: Final = 200
OUTPUT_SCHEMA_MAX_BYTES: Final = 32 * 1024
META_MAX_BYTES: Final = 16 * 1024
"""Of `_meta` as JSON; a longer one is left away."""
MEANT = frozenset({"wayline", "modelcontextprotocol", "mcp"})
"""Labels before the slash of names in `_meta` that mean something to us or to the protocol: no stranger sets those."""
PROGRESS_TOKEN: Final = "progressToken"


def tool_details(offered: ListedTool, arguments: Arguments, *, trusted: bool) -> ToolDetails | None:
    """Return what is passed on of a tool; None: nothing. A schema that cannot be used is left away.

    A hint that makes a client more careful is passed on, one that makes it less careful only of a trusted server.
    """
    hints = offered.annotations
    title = offered.title or (hints.title if hints is not None else None)
    details = ToolDetails(
        title=one_line(title or "", at_most=TITLE_MAX_CHARS),
        output_schema=output_schema(offered.output_schema, arguments),
        destructive=_careful(hints.destructive_hint if hints else None, trusted=trusted),
        open_world=_careful(hints.open_world_hint if hints else None, trusted=trusted),
        meta=passed_on(offered.meta),
    )
    return None if details == ToolDetails() else details


def output_schema(schema: dict[str, Any] | None, arguments: Arguments) -> dict[str, Any] | None:
    """Return the schema of a tool's structured content as it is passed on; None: none that can be used."""
    if schema is None or len(json.dumps(schema)) > OUTPUT_SCHEMA_MAX_BYTES:
        return None
    read = read_schema(schema)
    return None if arguments.check_schema(read) else read


def passed_on(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what of a server's `_meta` means nothing to us or to the protocol, where it is small."""
    kept = {name: value for name, value in (meta or {}).items() if not _means_something(name)}
    if not kept or len(json.dumps(kept)) > META_MAX_BYTES:
        return {}
    return kept


def _means_something(name: str) -> bool:
    prefix, slash, _ = name.rpartition("/")
    return name == PROGRESS_TOKEN or (bool(slash) and not MEANT.isdisjoint(prefix.lower().split(".")))


def _careful(hint: bool | None, *, trusted: bool) -> bool | None:
    return hint if hint or trusted else None
