"""List what a connected server offers, page by page; a tool that cannot be read takes no other one away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import structlog
from pydantic import RootModel, ValidationError

from wayline.tool_registry.definitions.definitions import TOOLS_MAX, Definition, can_be_kept, definition_of
from wayline.tool_registry.definitions.visible_text import visible

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import Tool

log = structlog.get_logger()

PAGES_MAX = 100
READ_MAX = TOOLS_MAX + 1
"""Tools of one page that are read: one more shows that a server offers too many."""
REST = "the rest of the list"
WHY_CHARS = 200
NAMED_CHARS = 100
OPTIONAL = ("title", "annotations", "outputSchema", "icons", "execution", "_meta")
"""What a tool can be called without: where one of them is wrong, it is left away."""

_PAGES: ContextVar[list[dict[str, Any]] | None] = ContextVar("pages of tools as they came", default=None)


class _RawPage(RootModel[dict[str, Any]]):
    """A page of tools as it came over the wire."""


@dataclass(frozen=True)
class OfferedTool:
    """A tool as the library reads it, and as it came over the wire."""

    tool: Tool
    raw: dict[str, Any]


@dataclass(frozen=True)
class OfferedTools:
    """What a server offers."""

    tools: list[OfferedTool] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)
    """Why each of the others cannot be read, by its server's name for it, or by its place."""


@dataclass(frozen=True)
class RedactedTool:
    """A tool without its server's secrets, and its definition."""

    tool: Tool
    definition: Definition


def redacted_tools(offered: Iterable[OfferedTool], without_secrets: Callable[[Any], Any]) -> list[RedactedTool]:
    """Return tools in the order of their names; left out is one whose name cannot be kept or holds a secret."""
    taken: list[RedactedTool] = []
    for one in offered:
        shown = without_secrets(one.raw)
        if not can_be_kept(one.tool.name) or shown.get("name") != one.tool.name:
            log.warning("tool left out", why="its name holds a secret, or characters that cannot be kept")
            continue
        tool = one.tool if shown == one.raw else read_tool(shown)
        if not isinstance(tool, str):
            taken.append(RedactedTool(tool, definition_of(one.raw, shown=shown)))
    return sorted(taken, key=lambda one: one.tool.name)


def read_tool(raw: Any) -> Tool | str:
    """Return a tool, or why it cannot be read; one without a schema takes no arguments."""
    from mcp_types import Tool

    if not isinstance(raw, dict) or not isinstance(raw.get("name"), str):
        return "it has no name"
    # PHP writes an empty map as a list.
    none = raw.get("inputSchema") in (None, [])
    whole = {**raw, "inputSchema": {"type": "object", "properties": {}}} if none else raw
    if not isinstance(whole["inputSchema"], dict):
        return "its inputSchema is not an object"
    try:
        return Tool.model_validate(whole, by_name=False)
    except ValidationError:
        pass
    try:
        needed = {key: value for key, value in whole.items() if key not in OPTIONAL}
        if not isinstance(needed.get("description", ""), str):
            del needed["description"]
        return Tool.model_validate(needed, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:WHY_CHARS]


async def offered_tools(client: Client) -> OfferedTools:
    """Return all tools of a server; a cursor that repeats, or that brings nothing new, ends the list."""
    found = OfferedTools()
    cursor: str | None = None
    cursors: set[str] = set()
    names: set[str] = set()
    for _ in range(PAGES_MAX):
        page, unread, cursor = await _tools_page(client, cursor)
        new = [one for one in page if one.tool.name not in names]
        found.tools.extend(new)
        found.unread.update(unread)
        names.update(one.tool.name for one in new)
        is_full = len(found.tools) + len(found.unread) > TOOLS_MAX
        if cursor is None or cursor in cursors or (page and not new) or is_full:
            break
        cursors.add(cursor)
    return found


async def first_page(client: Client) -> None:
    """Ask for the first tools, only to hear whether the server answers."""
    await _raw_page(client, None)


async def _raw_page(client: Client, cursor: str | None) -> dict[str, Any]:
    from mcp_types import ListToolsRequest, PaginatedRequestParams

    # Not `list_tools`: its models drop the fields that they do not know.
    request = ListToolsRequest(params=PaginatedRequestParams(cursor=cursor))
    _keep_pages_raw(client.session)
    pages: list[dict[str, Any]] = []
    token = _PAGES.set(pages)
    try:
        page = await client.session.send_request(request, _RawPage)
    finally:
        _PAGES.reset(token)
    return pages[-1] if pages else page.root


class _RawPagesDispatcher:
    """A session's dispatcher that keeps a page of tools as it came, and shows the library one without tools.

    The library refuses a whole page for one tool that is not as the protocol says.
    """

    keeps_pages = True

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def send_raw_request(self, method: str, params: Any, opts: Any) -> dict[str, Any]:
        raw = await self._inner.send_raw_request(method, params, opts)
        pages = _PAGES.get()
        if method != "tools/list" or pages is None or not isinstance(raw, dict):
            return raw
        pages.append(raw)
        return {**{key: value for key, value in raw.items() if key != "nextCursor"}, "tools": []}


def _keep_pages_raw(session: Any) -> None:
    inner = getattr(session, "_dispatcher", None)
    # It may stand inside of another one, which hands every attribute on.
    if inner is not None and not getattr(inner, "keeps_pages", False):
        session._dispatcher = _RawPagesDispatcher(inner)


async def _tools_page(client: Client, cursor: str | None) -> tuple[list[OfferedTool], dict[str, str], str | None]:
    from mcp_types import ListToolsResult

    raw = await _raw_page(client, cursor)
    listed = raw.get("tools")
    if not isinstance(listed, list):
        raise ValueError("its list of tools is not a list")
    offered, unread = await asyncio.to_thread(_read_page, listed)
    following = raw.get("nextCursor")
    following = following if isinstance(following, str) else None
    # They are tools already: to check two thousand of them again takes as long as it took to read them.
    page = ListToolsResult.model_construct(tools=[one.tool for one in offered], next_cursor=following)
    # What `list_tools` does with a page: a call needs the headers and the schemas that it notes.
    kept = client.session._absorb_tool_listing(  # pyright: ignore[reportPrivateUsage]
        page, complete=cursor is None and following is None
    )
    usable = {id(tool) for tool in kept.tools}
    for one in offered:
        if id(one.tool) not in usable:
            unread[_named(one.raw, 0)] = "its x-mcp-header is not valid"
    return [one for one in offered if id(one.tool) in usable], unread, following


def _read_page(listed: list[Any]) -> tuple[list[OfferedTool], dict[str, str]]:
    """Return the tools of a page, and why each of the others cannot be read."""
    offered: list[OfferedTool] = []
    unread: dict[str, str] = {}
    # To read a tool takes some hundredths of a millisecond, and a page may name hundreds of thousands.
    if len(listed) > READ_MAX:
        unread[REST] = f"a page of a list has at most {READ_MAX}"
    for number, one in enumerate(listed[:READ_MAX]):
        tool = read_tool(one)
        if isinstance(tool, str):
            unread[_named(one, number)] = visible(tool)
        else:
            offered.append(OfferedTool(tool, one))
    return offered, unread


def _named(raw: Any, number: int) -> str:
    name = raw.get("name") if isinstance(raw, dict) else None
    return visible(name[:NAMED_CHARS]) if isinstance(name, str) and name else f"tool {number + 1} of the list"


async def every_page(ask: Callable[..., Awaitable[Any]], what: str) -> list[Any]:
    """Return what a list of a server holds, over as many pages as it takes; a cursor that repeats ends it."""
    found: list[Any] = []
    cursor: str | None = None
    cursors: set[str | None] = set()
    for _ in range(PAGES_MAX):
        page = await ask(cursor=cursor)
        found += getattr(page, what)
        cursor = page.next_cursor
        if cursor is None or cursor in cursors:
            break
        cursors.add(cursor)
    return found
