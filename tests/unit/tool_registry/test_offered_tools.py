"""Lists of tools as foreign servers give them, page by page."""

from __future__ import annotations

from typing import Any

import pytest

from wayline.tool_registry.connection.offered_tools import PAGES_MAX, READ_MAX, REST, offered_tools
from wayline.tool_registry.definitions.definitions import TOOLS_MAX

GOOD = {"name": "good", "inputSchema": {"type": "object"}}


class Session:
    """A session whose server gives these pages, by cursor."""

    def __init__(self, page_of: Any) -> None:
        self._page_of = page_of
        self.asked = 0

    @property
    def session(self) -> Session:
        return self

    async def send_request(self, request: Any, kind: Any) -> Any:
        self.asked += 1
        return kind(self._page_of(request.params.cursor))

    def _absorb_tool_listing(self, page: Any, *, complete: bool) -> Any:
        return page


def named(*names: str) -> list[dict[str, Any]]:
    return [{**GOOD, "name": name} for name in names]


async def listed(page_of: Any) -> tuple[list[str], dict[str, str], int]:
    session = Session(page_of)
    found = await offered_tools(session)  # type: ignore[arg-type]
    return [one.tool.name for one in found.tools], found.unread, session.asked


async def test_a_cursor_that_repeats_ends_the_list_and_keeps_it():
    names = [f"t{number}" for number in range(30)]

    assert await listed(lambda _: {"tools": named(*names), "nextCursor": "30"}) == (names, {}, 2)


async def test_new_cursors_without_new_tools_end_the_list():
    def page(cursor: str | None) -> dict[str, Any]:
        return {"tools": named("a"), "nextCursor": f"{cursor}+"}

    assert await listed(page) == (["a"], {}, 2)


async def test_pages_without_end_are_bounded():
    def empty(cursor: str | None) -> dict[str, Any]:
        return {"tools": [], "nextCursor": f"{cursor}+"}

    def full(cursor: str | None) -> dict[str, Any]:
        at = int(cursor or 0)
        return {"tools": named(*(f"t{number}" for number in range(at, at + 100))), "nextCursor": str(at + 100)}

    def broken(cursor: str | None) -> dict[str, Any]:
        at = int(cursor or 0)
        tools = [{"name": f"t{number}", "inputSchema": 3} for number in range(at, at + 100)]
        return {"tools": tools, "nextCursor": str(at + 100)}

    assert (await listed(empty))[2] == PAGES_MAX
    assert len((await listed(full))[0]) == TOOLS_MAX + 100
    assert len((await listed(broken))[1]) == TOOLS_MAX + 100


async def test_no_more_tools_of_a_page_are_read_than_taken():
    page = named(*(f"t{number}" for number in range(2 * TOOLS_MAX)))

    names, unread, _ = await listed(lambda _: {"tools": page})

    assert (len(names), list(unread)) == (READ_MAX, [REST])


@pytest.mark.parametrize(
    ("bad", "name"),
    [
        (5, "tool 1 of the list"),
        ({}, "tool 1 of the list"),
        ({"name": 7, "inputSchema": {}}, "tool 1 of the list"),
        ({"name": "bad", "inputSchema": [1]}, "bad"),
        ({"name": "bad", "inputSchema": "none"}, "bad"),
    ],
)
async def test_a_tool_that_cannot_be_read_takes_no_other_away(bad: Any, name: str):
    names, unread, _ = await listed(lambda _: {"tools": [bad, GOOD]})

    assert names == ["good"]
    assert unread.keys() == {name}
    assert unread[name]


@pytest.mark.parametrize(
    "odd",
    [
        {"name": "odd"},
        {"name": "odd", "inputSchema": None},
        {**GOOD, "name": "odd", "description": 5},
        {**GOOD, "name": "odd", "annotations": "safe", "_meta": [], "outputSchema": 3, "icons": {}, "title": 9},
    ],
)
async def test_what_a_tool_can_do_without_is_left_away(odd: dict[str, Any]):
    assert await listed(lambda _: {"tools": [odd, GOOD]}) == (["odd", "good"], {}, 1)
