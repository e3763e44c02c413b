"""An index is made once, and again when a tenant's tools have changed."""

from wayline.contracts.tools import ToolDefinition
from wayline.tool_registry.tool_search import Entry, ToolIndexes


def entries(*names: str) -> list[Entry]:
    return [Entry(ToolDefinition(name=name)) for name in names]


async def test_the_same_tools_share_an_index_until_one_changes():
    indexes = ToolIndexes()

    first = await indexes.of("t", entries("a", "b"))
    again = await indexes.of("t", entries("a", "b"))
    other = await indexes.of("t", entries("a", "c"))

    assert first is again
    assert first is not other
    assert [match.tool.name for match in other.search("c")] == ["c"]


async def test_tenants_do_not_find_each_others_tools():
    indexes = ToolIndexes()
    await indexes.of("t1", entries("secret"))

    theirs = await indexes.of("t2", entries("public"))

    assert theirs.search("secret") == []
