"""List what a connected server offers, page by page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog
from pydantic import RootModel

from wayline.tool_registry.tools.definitions import Definition, can_be_kept, definition_of

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import Tool

log = structlog.get_logger()

PAGES_MAX = 100


class _RawPage(RootModel[dict[str, Any]]):
    """A page of tools as it came over the wire."""


@dataclass(frozen=True)
class OfferedTool:
    """A tool as the library reads it, and as it came over the wire."""

    tool: Tool
    raw: dict[str, Any]


@dataclass(frozen=True)
class RedactedTool:
    """A tool without its server's secrets, and its definition."""

    tool: Tool
    definition: Definition


def redacted_tools(offered: Iterable[OfferedTool], without_secrets: Callable[[Any], Any]) -> list[RedactedTool]:
    """Return tools in the order of their names; left out is one whose name cannot be kept or holds a secret."""
    from mcp_types import Tool

    taken: list[RedactedTool] = []
    for one in offered:
        shown = without_secrets(one.raw)
        if not can_be_kept(one.tool.name) or shown.get("name") != one.tool.name:
            log.warning("tool left out", why="its name holds a secret, or characters that cannot be kept")
            continue
        tool = one.tool if shown == one.raw else Tool.model_validate(shown, by_name=False)
        taken.append(RedactedTool(tool, definition_of(one.raw, shown=shown)))
    # Two names may become one of ours: which of the tools gets it must not depend on the order of a list.
    return sorted(taken, key=lambda one: one.tool.name)


async def offered_tools(client: Client) -> list[OfferedTool]:
    """Return all tools of a server."""
    found: list[OfferedTool] = []
    cursor: str | None = None
    for _ in range(PAGES_MAX):
        page, cursor = await _tools_page(client, cursor)
        found += page
        if cursor is None:
            break
    return found


async def _tools_page(client: Client, cursor: str | None) -> tuple[list[OfferedTool], str | None]:
    from mcp_types import ListToolsRequest, ListToolsResult, PaginatedRequestParams

    # Not `list_tools`: its models drop the fields that they do not know.
    request = ListToolsRequest(params=PaginatedRequestParams(cursor=cursor))
    raw = (await client.session.send_request(request, _RawPage)).root
    page = ListToolsResult.model_validate(raw, by_name=False)
    offered = [OfferedTool(tool, of) for tool, of in zip(page.tools, raw["tools"], strict=True)]
    # What `list_tools` does with a page: a call needs the headers and the schemas that it notes.
    complete = cursor is None and page.next_cursor is None
    kept = client.session._absorb_tool_listing(page, complete=complete)  # pyright: ignore[reportPrivateUsage]
    usable = {id(tool) for tool in kept.tools}
    return [one for one in offered if id(one.tool) in usable], page.next_cursor


async def every_page(ask: Callable[..., Awaitable[Any]], what: str) -> list[Any]:
    """Return what a list of a server holds, over as many pages as it takes."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(PAGES_MAX):
        page = await ask(cursor=cursor)
        found += getattr(page, what)
        cursor = page.next_cursor
        if cursor is None:
            break
    return found
