"""What is proposed as an agent's `tools`: nothing that it may not use, nothing that is loaded already."""

from __future__ import annotations

from typing import Any

import pytest

from wayline.contracts.agents import AgentConfig
from wayline.contracts.tools import BUILTIN, ToolDefinition, may_use
from wayline.gateway.tool_proposals import ProposedTools, proposed_tools

FORMS = tuple(ToolDefinition(name=f"bank__form_{number:02}", server="bank") for number in range(20))
RATE = ToolDefinition(name="bank__rate", server="bank")
PAY = ToolDefinition(name="bank__pay", server="bank")
CLOCK = ToolDefinition(name="get_current_time", server=BUILTIN)
THERE = (*FORMS, PAY, RATE, CLOCK)


def proposed(tools: Any, *often: str, there: tuple[ToolDefinition, ...] = THERE, **more: Any) -> ProposedTools | None:
    return proposed_tools(AgentConfig.model_validate({"tools": tools, **more}), often, there)


def test_a_deferred_tool_that_jobs_often_call_is_proposed():
    assert proposed({"deferred": ["*"]}, "bank__rate") == ProposedTools(always=("bank__rate",), deferred=("*",))


def test_a_tool_deferred_by_its_name_is_moved():
    tools = {"always": ["bank__pay"], "deferred": ["bank__rate", "crm__*"]}

    assert proposed(tools, "bank__rate") == ProposedTools(always=("bank__pay", "bank__rate"), deferred=("crm__*",))


def test_what_is_loaded_always_stays_in_a_proposal():
    tools = {"always": ["bank__form_0*", "get_current_time"], "deferred": ["bank__*"]}

    assert proposed(tools, "bank__rate", "bank__form_01", "get_current_time") == ProposedTools(
        always=("bank__form_0*", "get_current_time", "bank__rate"), deferred=("bank__*",)
    )


def test_a_long_list_keeps_the_tools_of_its_prompts():
    # Those that it names beside a pattern, and the built-in ones.
    assert proposed(["bank__form_07", "*"], "bank__rate", "bank__form_07") == ProposedTools(
        always=("bank__form_07", "get_current_time", "bank__rate"), deferred=("*",)
    )


@pytest.mark.parametrize(
    ("tools", "more"),
    [
        # The agent had bank__* before.
        (["bank__rate"], {}),
        ({"deferred": ["bank__rate", "bank__form_*"]}, {}),
        ({"deferred": ["*"]}, {"tools_off": ("bank__pay",)}),
    ],
)
def test_a_tool_that_the_agent_lost_is_not_proposed(tools: Any, more: dict[str, Any]):
    assert proposed(tools, "bank__pay", **more) is None


@pytest.mark.parametrize("tools", [["bank__rate"], ["bank__rate", "bank__pay", "get_current_time"], ["bank__form_0*"]])
def test_an_agent_without_deferred_tools_gets_no_proposal(tools: Any):
    assert proposed(tools, "bank__rate", "bank__pay", "bank__form_01") is None


@pytest.mark.parametrize("often", ["no_such_tool", "run_agent"])
def test_a_name_that_no_tool_has_is_not_proposed(often: str):
    assert proposed({"deferred": ["*"]}, often) is None


def test_a_tool_loaded_always_is_not_proposed_again():
    saved = proposed(["*"], "bank__rate")

    assert saved is not None
    assert proposed(saved.model_dump(), "bank__rate") is None


@pytest.mark.parametrize(
    "tools",
    [["*"], ["bank__*", "get_current_time"], {"always": ["bank__form_0*"], "deferred": ["bank__*", "bank__rate"]}],
)
def test_a_proposal_neither_grants_nor_takes_tools(tools: Any):
    before = AgentConfig.model_validate({"tools": tools})
    saved = proposed(tools, "bank__rate", "bank__pay")

    assert saved is not None
    after = AgentConfig.model_validate({"tools": saved.model_dump()})
    # web_search has to be named: it stays away from an agent with `*`.
    names = [*(tool.name for tool in THERE), "web_search", "crm__pay"]
    assert [may_use(name, patterns=after.tools) for name in names] == [
        may_use(name, patterns=before.tools) for name in names
    ]
