"""Which tools are in every prompt, as the gateway and the executor both see it."""

from __future__ import annotations

from typing import Any

import pytest

from wayline.contracts.agents import AgentConfig
from wayline.contracts.tool_loading import always_loaded
from wayline.contracts.tools import BUILTIN, ToolDefinition
from wayline.executor.prompt import tool_loading

MANY = tuple(ToolDefinition(name=f"crm__{number:02}", server="crm") for number in range(15))
CLOCK = ToolDefinition(name="get_current_time", server=BUILTIN)


def names(tools: Any, listed: tuple[ToolDefinition, ...]) -> list[str]:
    return [tool.name for tool in always_loaded(AgentConfig.model_validate({"tools": tools}), listed)]


def test_fifteen_tools_are_loaded_and_sixteen_are_not():
    assert names(["*"], MANY) == [tool.name for tool in MANY]
    assert names(["*"], (*MANY, CLOCK)) == ["get_current_time"]


@pytest.mark.parametrize("listed", [MANY, (*MANY, CLOCK)], ids=["few", "many"])
@pytest.mark.parametrize(
    "tools",
    [
        ["*"],
        ["crm__03", "*"],
        [*(tool.name for tool in MANY), CLOCK.name],
        {"always": ["crm__0*"], "deferred": ["*", "crm__03"]},
        {"always": ["*"], "deferred": ["crm__*"]},
    ],
)
def test_the_executor_loads_what_the_gateway_thinks_it_does(tools: Any, listed: tuple[ToolDefinition, ...]):
    config = AgentConfig.model_validate({"tools": tools})

    for required in ((), ("crm__07",)):
        expected = tool_loading.always_loaded(config, listed, required=required)
        assert list(always_loaded(config, listed, required=required)) == list(expected)
