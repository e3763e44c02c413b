"""Tools that exist and that nobody can call now: found by a search all the same, with how to enable each. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from shlex import quote

from wayline.contracts.searched_tools import UnusableTool
from wayline.contracts.tools import BUILTIN, ToolDefinition
from wayline.tool_registry.definitions.definitions import PinnedAway, schema_of
from wayline.tool_registry.definitions.fit_schema import fit_schema
from wayline.tool_registry.definitions.read_definition import read_description, read_schema
from wayline.tool_registry.definitions.tool_catalogue import own_name

DOES = {
    "web_fetch": "Read pages of the web: fetch a URL.",
    "web_search": "Search the web, for news, pages, images or videos.",
    "image_generate": "Make an image, a picture, from words.",
}
"""What the built-in tools do that an installation may lack."""


def unusable_tools(
    pinned: Iterable[PinnedAway], missing: Mapping[str, str]
) -> list[tuple[ToolDefinition, UnusableTool]]:
    """Return each tool that cannot be called, as a search compares it, with why not and how to enable it.

    `missing`: why each built-in tool that is not configured is not there, by name.
    """
    lacking = [(_builtin(name), _unset(name, why)) for name, why in missing.items()]
    return [*lacking, *((_definition(one), _held(one)) for one in pinned)]


def _builtin(name: str) -> ToolDefinition:
    return ToolDefinition(name=name, description=DOES.get(name, ""), server=BUILTIN)


def _unset(name: str, why: str) -> UnusableTool:
    says, _, how = why.partition(": ")
    return UnusableTool(name=name, why=says, how=f"{how} where the tool-registry runs")


def _definition(one: PinnedAway) -> ToolDefinition:
    name = own_name(one.server, one.name)
    if one.text is None:
        return ToolDefinition(name=name, server=one.server)
    description = json.loads(one.text).get("description")
    return ToolDefinition(
        name=name,
        description=read_description(description if isinstance(description, str) else ""),
        input_schema=fit_schema(read_schema(schema_of(one.text))).schema,
        server=one.server,
    )


def _held(one: PinnedAway) -> UnusableTool:
    name = own_name(one.server, one.name)
    if not one.enabled:
        why, how = f"its server {one.server} is disabled", f"`wayline mcp enable {one.server}`"
    elif one.waits:
        # Our name and not the server's, unless that is a plain word: a model reads this.
        only = f" --tool {quote(one.name)}" if name == f"{one.server}__{one.name}" else ""
        why, how = "its definition waits for approval", f"`wayline mcp approve {one.server}{only}`"
    else:
        why, how = "new instructions of its server wait for approval", f"`wayline mcp approve {one.server}`"
    return UnusableTool(name=name, why=why, how=how)
