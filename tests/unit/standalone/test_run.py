"""What `wayline run` says before it submits a job."""

from __future__ import annotations

from typing import Any, cast

from wayline.standalone.commands.run import unknown_tools


class Gateway:
    """Has two tools."""

    async def whole(self, path: str, name: str) -> dict[str, Any]:
        assert (path, name) == ("/v1/tools", "tools")
        return {"tools": [{"name": "search_knowledge"}, {"name": "bank__pay"}]}


async def test_a_tool_that_there_is_not_is_named_with_the_nearest():
    warnings = await unknown_tools(cast("Any", Gateway()), ["search_knowlege", "bank__*", "xyz"])

    assert [warning.split(" now")[0] for warning in warnings] == [
        "there is no tool 'search_knowlege'",
        "there is no tool 'xyz'",
    ]
    assert "nearest is search_knowledge" in warnings[0] and "nearest" not in warnings[1]


async def test_without_named_tools_nothing_is_asked():
    assert await unknown_tools(cast("Any", None), ()) == []
