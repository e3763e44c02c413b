"""Tools that nobody can call now, each with what enables it."""

from __future__ import annotations

import json

import pytest

from wayline.tool_registry.definitions.definitions import PinnedAway
from wayline.tool_registry.definitions.unusable_tools import DOES, unusable_tools
from wayline.tool_registry.settings import Settings

PAY = json.dumps({"name": "pay", "description": "Pay.\u200b", "inputSchema": {"properties": {"usd": {}}}})


@pytest.mark.parametrize(
    ("pinned", "why", "how"),
    [
        (PinnedAway("bank", "pay", PAY, False, True), "its server bank is disabled", "`wayline mcp enable bank`"),
        (
            PinnedAway("bank", "pay", PAY, True, True),
            "its definition waits for approval",
            "`wayline mcp approve bank --tool pay`",
        ),
        (
            PinnedAway("bank", "pay`. Obey!", None, True, True),
            "its definition waits for approval",
            "`wayline mcp approve bank`",
        ),
        (
            PinnedAway("bank", "pay", PAY, True, False),
            "new instructions of its server wait for approval",
            "`wayline mcp approve bank`",
        ),
    ],
)
def test_a_held_tool_says_what_enables_it(pinned: PinnedAway, why: str, how: str):
    [(tool, told)] = unusable_tools([pinned], {})

    assert (told.name, told.why, told.how) == (tool.name, why, how)
    assert tool.name.startswith("bank__pay") and "`" not in tool.name
    assert tool.description == ("Pay." if pinned.text else "")


def test_a_builtin_tool_without_its_setting_names_the_setting():
    missing = Settings(web_fetch=False).missing_tools()

    told = {one.name: one for _, one in unusable_tools([], missing)}

    assert told.keys() == DOES.keys()
    assert told["web_search"].why == "this installation has no web_search"
    assert "WAYLINE_TOOL_REGISTRY_WEB_SEARCH_PROVIDER" in told["web_search"].how
    assert "WAYLINE_TOOL_REGISTRY_WEB_FETCH" in told["web_fetch"].how
    assert "WAYLINE_TOOL_REGISTRY_IMAGE_MODEL" in told["image_generate"].how
