"""Choices for single tools become lists of names and patterns that say the same."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from wayline.console.pages.agents.tool_lists import State, ToolLists, ToolsNow, chosen
from wayline.contracts.agents import AgentConfig
from wayline.contracts.tool_loading import always_loaded
from wayline.contracts.tools import ToolDefinition, may_use

TOOLS = [ToolDefinition(name=name, description="", input_schema={}, server="bank") for name in ("pay", "rate", "b__a")]
CONFIGS: list[dict[str, Any]] = [
    {},
    {"tools": ["pay", "b__*"]},
    {"tools": ["*"], "tools_off": ["pay"]},
    {"tools": ["pay", "b__*"], "tools_loading": {"always": ["pay"], "deferred": ["b__*"]}},
    {"tools_loading": {"always": ["*"], "deferred": []}},
]


def now(config: AgentConfig) -> ToolsNow:
    """What the gateway's check says of a configuration."""
    usable = [tool for tool in TOOLS if may_use(tool.name, patterns=config.tools, off=config.tools_off)]
    loaded = frozenset(tool.name for tool in always_loaded(config, usable))
    return ToolsNow(frozenset(tool.name for tool in usable), loaded)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_a_chosen_tool_is_what_was_chosen_and_others_stay(config: dict[str, Any]):
    before = now(AgentConfig.model_validate(config))
    states: tuple[State, ...] = ("always", "deferred", "off")
    for tool, state in product(("pay", "rate", "b__a"), states):
        lists = chosen(ToolLists.of(config), {tool: state}, now=before, inherited=["*"])
        after = now(AgentConfig.model_validate(config | lists.fields()))

        assert after.state(tool) == state, (tool, state)
        others = {other.name for other in TOOLS} - {tool}
        assert {name: after.state(name) for name in others} == {name: before.state(name) for name in others}


def test_a_choice_of_what_is_there_already_changes_no_list():
    lists = ToolLists.of({"tools": ["pay"]})

    assert chosen(lists, {"pay": "always"}, now=ToolsNow(frozenset({"pay"}), frozenset({"pay"})), inherited=[]) == lists
