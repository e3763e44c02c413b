"""Turn the tools that a service announces on the bus into ours, checked like those of any server."""

from __future__ import annotations

import re
from dataclasses import replace

from wayline.contracts.bus_tools import SILENT_MAX_S, AnnounceTools, BusTool
from wayline.contracts.tool_details import ToolDetails
from wayline.contracts.tools import ToolDefinition
from wayline.tool_registry.definitions.arguments import Arguments
from wayline.tool_registry.definitions.fit_schema import fit_schema
from wayline.tool_registry.definitions.read_definition import read_description, read_schema
from wayline.tool_registry.definitions.tool_catalogue import NAME_MAX, Tool
from wayline.tool_registry.definitions.tool_details import output_schema
from wayline.tool_registry.settings import SEPARATOR

_HIDDEN = re.compile(r"[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
"""Characters of a description that a model reads and a person does not see."""


def announced_tools(
    announcement: AnnounceTools, arguments: Arguments, *, retry_after_s: tuple[float, ...]
) -> tuple[dict[str, Tool], dict[str, str]]:
    """Return a service's tools by name, and why each of the others cannot be offered."""
    found: dict[str, Tool] = {}
    left_out: dict[str, str] = {}
    for one in announcement.tools:
        tool = _tool(one, announcement.service, retry_after_s)
        if problem := _problem(tool, one, found, arguments):
            left_out[one.name] = problem
        else:
            schema = output_schema(one.output_schema, arguments)
            found[tool.name] = replace(tool, details=schema and ToolDetails(output_schema=schema))
    return found, left_out


def _tool(offered: BusTool, service: str, retry_after_s: tuple[float, ...]) -> Tool:
    fitted = fit_schema(read_schema(offered.input_schema))
    definition = ToolDefinition(
        name=f"{service}{SEPARATOR}{offered.name}",
        description=read_description(offered.description),
        input_schema=fitted.schema,
        effect=offered.effect,
        in_order=offered.in_order,
        timeout_s=offered.timeout_s,
        server=service,
        ask=offered.ask,
        untrusted=offered.untrusted,
    )
    return Tool(
        definition=definition,
        offered_as=offered.name,
        retry_after_s=retry_after_s,
        reconcile_with=offered.name,
        trusted=False,
        names=fitted.names,
        silent_max_s=SILENT_MAX_S,
    )


def _problem(tool: Tool, offered: BusTool, found: dict[str, Tool], arguments: Arguments) -> str | None:
    if len(tool.name) > NAME_MAX:
        return f"its name {tool.name} is longer than {NAME_MAX} characters"
    if tool.name in found:
        return "another tool of the service has the same name"
    if _HIDDEN.search(offered.description):
        return "its description holds characters that cannot be seen"
    if offered.input_schema.get("type") != "object":
        return 'its input_schema is not of "type": "object"'
    if problem := arguments.check_schema(offered.input_schema):
        return f"its input_schema {problem}"
    return None
