"""Tools over `/mcp`: which a key may use, and one call of one tool."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from mcp import Client, MCPError
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from wayline.contracts.budgets import Budget as SavedBudget
from wayline.contracts.budgets import BudgetConfig, BudgetList, ListBudgets, PutBudget
from wayline.contracts.tools import TASK_TOOLS
from wayline.contracts.traces import CostTable, GetCosts
from wayline.testkit import Platform, until
from wayline.testkit.effects_server import EffectsServer

from ..jobs.conftest import index_document, until_listed, with_tools
from .conftest import Door, open_door

PAY, PUT, LOOK = "effects__pay_once", "effects__put_idempotent", "effects__look_read"
BUILT_IN = {
    *("calculator", "date_calculate", "get_current_time", "search_knowledge", "memory_retrieve", "retrieve_context"),
    *TASK_TOOLS,
}


async def with_effects(platform: Platform, effects: EffectsServer, *services: str, **server: Any) -> Door:
    """Start the platform with a server whose effects are counted."""
    await effects.start()
    door = await open_door(platform, *services, registry=with_tools(effects.settings(**server)))
    await until_listed(platform, PAY)
    return door


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


async def test_the_scopes_of_a_key_decide_which_tools_it_sees(platform: Platform, effects: EffectsServer):
    door = await with_effects(platform, effects)
    server = {PAY, PUT, LOOK, "effects__book_reconcile", "web_fetch"}
    remembering = {"memory_save", "store_insight"}

    async with door.client(await door.key("read")) as reader:
        assert await names(reader) == {*BUILT_IN, "wait_for_job"}
    async with door.client(await door.key("read", "write")) as writer:
        assert await names(writer) == {*BUILT_IN, *remembering, "wait_for_job", "run_agent"}
        with pytest.raises(MCPError, match="no tool is called 'effects__look_read'"):
            await writer.call_tool(LOOK, {})
    async with door.client(await door.key("read", "tools")) as looker:
        assert await names(looker) == {*BUILT_IN, "wait_for_job", "web_fetch", LOOK}
    async with door.client(await door.key()) as everything:
        assert await names(everything) == {*BUILT_IN, *remembering, "wait_for_job", "run_agent", *server}


async def test_run_agent_names_the_agents_and_what_they_do(platform: Platform):
    door = await open_door(platform)
    await platform.put_agent("critic", description="Finds what is wrong\nwith a text.")

    async with door.client() as client:
        [run] = [tool for tool in (await client.list_tools()).tools if tool.name == "run_agent"]

    assert {"assistant", "critic"} <= set(run.input_schema["properties"]["agent"]["enum"])
    assert "- critic: Finds what is wrong with a text." in (run.description or "")


async def test_a_search_answers_with_passages_and_their_citations(platform: Platform):
    door = await open_door(platform, "retrieval")
    await index_document(platform, "tides", "tides.md", "High water follows the moon by fifty minutes a day.")

    async with door.client() as client:
        found = await client.call_tool("search_knowledge", {"query": "when is high water?"})

    assert "follows the moon" in found.content[0].text
    assert (found.is_error, found.meta["wayline/effect"]) == (False, "read")
    assert [one["document_id"] for one in found.meta["wayline/citations"]] == ["tides"]


async def test_the_same_key_again_is_the_same_call(platform: Platform, effects: EffectsServer):
    door = await with_effects(platform, effects)

    async with door.client() as client:
        first = await client.call_tool(PAY, {"amount": 3}, meta={"wayline/key": "order 7"})
        again = await client.call_tool(PAY, {"amount": 3}, meta={"wayline/key": "order 7"})
        await client.call_tool(PAY, {"amount": 4})

    assert first.content == again.content
    assert effects.amounts() == [3, 4]


async def test_a_key_of_another_user_is_another_call(platform: Platform, effects: EffectsServer):
    door = await with_effects(platform, effects)

    async with door.client() as client:
        for user in ("alice", "bob", "alice"):
            await client.call_tool(PAY, {"amount": 3}, meta={"wayline/key": "order 8", "wayline/user": user})
        with pytest.raises(MCPError, match="wayline/user"):
            await client.call_tool(PAY, {"amount": 3}, meta={"wayline/user": "a\nb"})

    assert effects.amounts() == [3, 3]


async def test_what_a_tool_charged_is_in_budgets_and_costs(platform: Platform, effects: EffectsServer):
    door = await with_effects(platform, effects, "tracing")
    budget = PutBudget(tenant="default", name="month", config=BudgetConfig(limit_usd=Decimal(5)))
    await platform.bus.ask(budget, SavedBudget)

    async with door.client() as client:
        paid = await client.call_tool(PAY, {"amount": 3}, meta={"wayline/key": "order 7"})
        await client.call_tool(PAY, {"amount": 3}, meta={"wayline/key": "order 7"})

    async def costs() -> CostTable:
        return await platform.bus.ask(GetCosts(tenant="default", group_by=("tool",)), CostTable)

    async def counted() -> bool:
        return (await costs()).total is not None

    assert paid.meta["wayline/cost_usd"] == "0.010000000"
    await until(counted, why="the charge is recorded")
    [row] = (await costs()).rows
    assert (row.group["tool"], row.cost_usd, row.calls) == (PAY, Decimal("0.01"), 1)
    [month] = (await platform.bus.ask(ListBudgets(tenant="default"), BudgetList)).budgets
    assert month.spent_usd == Decimal("0.01")


@pytest.mark.parametrize("ask", ["always", "writes"])
async def test_a_tool_that_needs_approval_is_refused(platform: Platform, effects: EffectsServer, ask: str):
    door = await with_effects(platform, effects, ask=ask)

    async with door.client() as client:
        listed = await names(client)
        refused = await client.call_tool(PAY, {"amount": 3})

    assert PAY not in listed
    assert (LOOK in listed) is (ask == "writes")
    assert (refused.is_error, refused.meta["wayline/error"]) == (True, "needs_approval")
    assert "with run_agent" in refused.content[0].text
    assert effects.amounts() == []


async def test_the_words_of_strangers_are_marked(platform: Platform, effects: EffectsServer):
    door = await with_effects(platform, effects, untrusted=True)

    async with door.client() as client:
        listed = {tool.name: tool.meta for tool in (await client.list_tools()).tools}
        looked = await client.call_tool(LOOK, {"query": "x"})

    assert listed[LOOK] == {"wayline/effect": "read", "wayline/untrusted": True}
    assert listed["get_current_time"] == {"wayline/effect": "read"}
    assert looked.meta["wayline/untrusted"] is True


async def test_what_a_tool_refuses_is_a_result_for_the_model(platform: Platform):
    door = await open_door(platform)

    async with door.client() as client:
        nowhere = await client.call_tool("get_current_time", {"timezone": "Atlantis"})
        wrong = await client.call_tool("get_current_time", {"timezone": 3})

    assert (nowhere.is_error, nowhere.meta["wayline/error"]) == (True, "tool_failed")
    assert "no IANA time zone" in nowhere.content[0].text
    assert (wrong.is_error, wrong.meta["wayline/error"]) == (True, "invalid_arguments")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_that_cancels_stops_its_tool(platform: Platform, effects: EffectsServer, mode: str):
    effects.delay_ms = 60_000
    door = await with_effects(platform, effects)

    async with door.client(mode=mode) as client:
        calling = asyncio.create_task(client.call_tool(PUT, {"value": "x"}))
        await until(lambda: effects.file.with_name("effects.txt.begun").exists(), why="the tool has begun")
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling

        async def cancelled() -> bool:
            async with platform.superuser() as conn:
                row = await conn.fetchrow("SELECT state FROM tools.calls WHERE tool = $1", PUT)
            return row is not None and row["state"] != "started"

        await until(cancelled, why="the call is over")

    assert effects.calls() == []


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_calls_spans_are_below_the_request(platform: Platform, mode: str):
    door = await open_door(platform)
    spans = InMemorySpanExporter()
    for name in ("gateway", "tool_registry"):
        platform.services[name].telemetry.add_processor(SimpleSpanProcessor(spans))

    async with door.client(mode=mode) as client:
        await client.call_tool("get_current_time", {})

    [tool] = [span for span in spans.get_finished_spans() if span.name == "tools/call get_current_time"]
    requests = [span for span in spans.get_finished_spans() if span.name == "POST /mcp"]
    [call] = [span for span in requests if (span.attributes or {}).get("mcp.method.name") == "tools/call"]
    assert tool.context.trace_id == call.context.trace_id
    assert (call.attributes or {})["gen_ai.tool.name"] == "get_current_time"
    assert (call.attributes or {})["wayline.tenant"] == "default"
