"""What agents call, and which `tools` are proposed of it, over HTTP."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from wayline.contracts.agents import Agent, AgentConfig, GetAgent
from wayline.contracts.errors import NotFound, Retry
from wayline.contracts.money import Usage
from wayline.contracts.tool_use import (
    AgentsToolUse,
    AgentToolUse,
    FindAgentsUsing,
    GetAgentsToolUse,
    GetToolFigures,
    UsedTool,
)
from wayline.contracts.tools import ListTools, ToolDefinition, ToolList
from wayline.contracts.traces import CostRow, CostTable, GetCosts

from .conftest import Running
from .others import Others

RATE, PAY = ToolDefinition(name="bank__rate"), ToolDefinition(name="bank__pay")
DEFERRED = {"deferred": ["bank__*"]}


def used(agent: str, *tools: str) -> AgentToolUse:
    return AgentToolUse(
        agent=agent, jobs=10, tools=tuple(UsedTool(tool=name, jobs=9) for name in tools), always=tuple(tools)
    )


async def proposals(gateway: Running, others: Others, *uses: AgentToolUse, **tools: Any) -> dict[str, Any]:
    """Return what is proposed for agents whose jobs called tools; `tools` are those of the agents that there are."""

    def agent(asked: GetAgent) -> Agent | NotFound:
        if asked.name not in tools:
            return NotFound("agent", asked.name)
        return Agent(name=asked.name, version=1, config=AgentConfig.model_validate({"tools": tools[asked.name]}))

    await others.answer(GetAgentsToolUse, AgentsToolUse(agents=uses))
    await others.answer(GetAgent, agent)
    answer = await gateway.client.get("/v1/tools/usage")
    assert answer.status_code == 200
    return {one["agent"]: one["tools_proposed"] for one in answer.json()["agents"]}


async def test_only_what_an_agent_may_use_now_is_proposed(gateway: Running, others: Others):
    await others.answer(ListTools, ToolList(tools=(PAY, RATE)))
    agents: dict[str, Any] = {"banker": DEFERRED, "reduced": {"deferred": ["bank__rate"]}, "small": ["bank__rate"]}
    uses = (used(name, "bank__pay", "no_such_tool") for name in (*agents, "gone"))

    found = await proposals(gateway, others, *uses, **agents)

    banker = {"always": ["bank__pay"], "deferred": ["bank__*"]}
    assert found == {"banker": banker, "reduced": None, "small": None, "gone": None}


async def test_usage_is_shown_while_no_tools_can_be_listed(gateway: Running, others: Others):
    await others.answer(ListTools, Retry("no server was reached yet"))

    found = await proposals(gateway, others, used("banker", "bank__rate"), banker=DEFERRED)

    assert found == {"banker": None}


async def test_tools_of_one_server_are_listed_in_pages(gateway: Running, others: Others):
    named = (("bank__pay", "bank"), ("bank__rate", "bank"), ("zoom", "builtin"))
    tools = tuple(ToolDefinition(name=name, server=server) for name, server in named)
    await others.answer(ListTools, ToolList(tools=tools))

    first = (await gateway.client.get("/v1/tools?server=bank&limit=1")).json()
    rest = (await gateway.client.get(f"/v1/tools?server=bank&cursor={first['next_cursor']}")).json()

    assert [tool["name"] for tool in (*first["tools"], *rest["tools"])] == ["bank__pay", "bank__rate"]
    assert rest["next_cursor"] is None


async def test_a_tool_is_shown_with_its_users_figures_and_dollars(gateway: Running, others: Others):
    await others.answer(ListTools, ToolList(tools=(PAY, RATE)))
    await others.answer(FindAgentsUsing)
    await others.answer(GetToolFigures)
    total = CostRow(group={}, calls=3, calls_unknown=1, usage=Usage(), cost_usd=Decimal("0.25"))
    await others.answer(GetCosts, CostTable(rows=(), total=total))

    shown = (await gateway.client.get("/v1/tools/bank__pay")).json()
    missing = await gateway.client.get("/v1/tools/bank__nothing")

    assert (shown["definition"]["name"], shown["definition"]["effect"], shown["days"]) == ("bank__pay", "once", 30)
    assert shown["agents"] == [{"name": "critic", "version": 2}]
    assert (shown["figures"]["failed"], shown["figures"]["p95_ms"]) == ({"tool_failed": 1}, 80.0)
    assert (shown["cost_usd"], shown["calls_unknown"]) == ("0.25", 1)
    assert missing.status_code == 404


async def test_a_tool_is_shown_while_tracing_is_away(gateway: Running, others: Others):
    await others.answer(ListTools, ToolList(tools=(PAY,)))
    await others.answer(FindAgentsUsing)
    await others.answer(GetToolFigures, lambda _: Retry("away"))
    await others.answer(GetCosts, lambda _: Retry("away"))

    shown = await gateway.client.get("/v1/tools/bank__pay")

    assert (shown.status_code, shown.json()["figures"], shown.json()["cost_usd"]) == (200, None, None)
