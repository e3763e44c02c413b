# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false, reportOptionalSubscript=false
"""Tools over `/mcp`: which a key may use, and one call of one tool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal

import pytest
import pytest_asyncio
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

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

PAY, PUT, LOOK = "effects__pay_once", "effects__put_idempotent", "effects__look_read"
BUILT_IN = {
    *("calculator", "date_calculate", "get_current_time", "search_knowledge", "memory_retrieve", "retrieve_context"),
    *TASK_TOOLS,
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def servers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[EffectsServer, EffectsServer]]:
    """A server whose effects are counted, and one that takes longer than a test."""
    directory = tmp_path_factory.mktemp("effects")
    both = EffectsServer(directory / "effects.txt"), EffectsServer(directory / "slow.txt", delay_ms=60_000)
    for server in both:
        await server.start()
    yield both
    for server in both:
        server.kill()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_door(module_platform: Platform, servers: tuple[EffectsServer, EffectsServer]) -> Door:
    effects, slow = servers
    offered = (
        effects.settings(),
        effects.settings(name="always", ask="always"),
        effects.settings(name="writes", ask="writes"),
        effects.settings(name="strangers", untrusted=True),
        slow.settings(name="slow"),
    )
    door = await open_door(module_platform, "retrieval", "tracing", registry=with_tools(*offered))
    for server in offered:
        await until_listed(module_platform, f"{server['name']}__look_read")
    return door


@pytest.fixture
def effects(servers: tuple[EffectsServer, EffectsServer]) -> EffectsServer:
    """The server whose effects are counted, without those of the test before."""
    servers[0].forget()
    return servers[0]


@pytest.fixture
def slow(servers: tuple[EffectsServer, EffectsServer]) -> EffectsServer:
    servers[1].forget()
    return servers[1]


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.asyncio(loop_scope="function")
async def test_the_scopes_of_a_key_decide_which_tools_it_sees(platform: Platform, effects: EffectsServer):
    door = await open_door(platform, registry=with_tools(effects.settings()))
    await until_listed(platform, PAY)
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


async def test_run_agent_names_the_agents_and_what_they_do(door: Door):
    await door.platform.put_agent("critic", description="Finds what is wrong\nwith a text.")

    async with door.client() as client:
        [run] = [tool for tool in (await client.list_tools()).tools if tool.name == "run_agent"]

    assert {"assistant", "critic"} <= set(run.input_schema["properties"]["agent"]["enum"])
    assert "- critic: Finds what is wrong with a text." in (run.description or "")


async def test_a_search_answers_with_passages_and_their_citations(door: Door):
    await index_document(door.platform, "tides", "tides.md", "High water follows the moon by fifty minutes a day.")

    async with door.client() as client:
        found = await client.call_tool("search_knowledge", {"query": "when is high water?"})

    assert "follows the moon" in found.content[0].text
    assert (found.is_error, found.meta["wayline/effect"]) == (False, "read")
    assert [one["document_id"] for one in found.meta["wayline/citations"]] == ["tides"]


async def test_the_same_key_again_is_the_same_call(door: Door, effects: EffectsServer):
    async with door.client() as client:
        first = await client.call_tool(PAY, {"amount": 3}, meta={"wayline/key": "order 7"})
        again = await client.call_tool(PAY, {"amount": 3}, meta={"wayline/key": "order 7"})
        await client.call_tool(PAY, {"amount": 4})

    assert first.content == again.content
    assert effects.amounts() == [3, 4]


async def test_a_key_of_another_user_is_another_call(door: Door, effects: EffectsServer):
    async with door.client() as client:
        for user in ("alice", "bob", "alice"):
            await client.call_tool(PAY, {"amount": 3}, meta={"wayline/key": "order 8", "wayline/user": user})
        with pytest.raises(MCPError, match="wayline/user"):
            await client.call_tool(PAY, {"amount": 3}, meta={"wayline/user": "a\nb"})

    assert effects.amounts() == [3, 3]


async def test_what_a_tool_charged_is_in_budgets_and_costs(door: Door):
    bus, tenant = door.platform.bus, door.platform.tenant
    budget = PutBudget(tenant=tenant, name="month", config=BudgetConfig(limit_usd=Decimal(5)))
    await bus.ask(budget, SavedBudget)

    async with door.client() as client:
        paid = await client.call_tool(PAY, {"amount": 3}, meta={"wayline/key": "order 7"})
        await client.call_tool(PAY, {"amount": 3}, meta={"wayline/key": "order 7"})

    async def costs() -> CostTable:
        return await bus.ask(GetCosts(tenant=tenant, group_by=("tool",)), CostTable)

    async def counted() -> bool:
        return (await costs()).total is not None

    assert paid.meta["wayline/cost_usd"] == "0.010000000"
    await until(counted, why="the charge is recorded")
    [row] = (await costs()).rows
    assert (row.group["tool"], row.cost_usd, row.calls) == (PAY, Decimal("0.01"), 1)
    [month] = (await bus.ask(ListBudgets(tenant=tenant), BudgetList)).budgets
    assert month.spent_usd == Decimal("0.01")


@pytest.mark.parametrize("ask", ["always", "writes"])
async def test_a_tool_that_needs_approval_is_refused(door: Door, effects: EffectsServer, ask: str):
    pay, look = f"{ask}__pay_once", f"{ask}__look_read"

    async with door.client() as client:
        listed = await names(client)
        refused = await client.call_tool(pay, {"amount": 3})

    assert pay not in listed
    assert (look in listed) is (ask == "writes")
    assert (refused.is_error, refused.meta["wayline/error"]) == (True, "needs_approval")
    assert "with run_agent" in refused.content[0].text
    assert effects.amounts() == []


async def test_the_words_of_strangers_are_marked(door: Door):
    look = "strangers__look_read"

    async with door.client() as client:
        listed = {tool.name: tool.meta for tool in (await client.list_tools()).tools}
        looked = await client.call_tool(look, {"query": "x"})

    assert listed[look] == {"wayline/effect": "read", "wayline/untrusted": True}
    assert listed["get_current_time"] == {"wayline/effect": "read"}
    assert looked.meta["wayline/untrusted"] is True


async def test_what_a_tool_refuses_is_a_result_for_the_model(door: Door):
    async with door.client() as client:
        nowhere = await client.call_tool("get_current_time", {"timezone": "Atlantis"})
        wrong = await client.call_tool("get_current_time", {"timezone": 3})

    assert (nowhere.is_error, nowhere.meta["wayline/error"]) == (True, "tool_failed")
    assert "no IANA time zone" in nowhere.content[0].text
    assert (wrong.is_error, wrong.meta["wayline/error"]) == (True, "invalid_arguments")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_that_cancels_stops_its_tool(door: Door, slow: EffectsServer, mode: str):
    async with door.client(mode=mode) as client:
        calling = asyncio.create_task(client.call_tool("slow__put_idempotent", {"value": "x"}))
        await until(lambda: slow.has_begun("put_idempotent"), why="the tool has begun")
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling

        async def cancelled() -> bool:
            async with door.platform.superuser() as conn:
                row = await conn.fetchrow("SELECT state FROM tools.calls WHERE tenant = $1", door.platform.tenant)
            return row is not None and row["state"] != "started"

        await until(cancelled, why="the call is over")

    assert slow.calls() == []


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_calls_spans_are_below_the_request(door: Door, mode: str):
    platform, spans = door.platform, InMemorySpanExporter()
    for name in ("gateway", "tool_registry"):
        platform.services[name].telemetry.add_processor(SimpleSpanProcessor(spans))

    async with door.client(mode=mode) as client:
        await client.call_tool("get_current_time", {})

    [tool] = [span for span in spans.get_finished_spans() if span.name == "tools/call get_current_time"]
    requests = [span for span in spans.get_finished_spans() if span.name == "POST /mcp"]
    [call] = [span for span in requests if (span.attributes or {}).get("mcp.method.name") == "tools/call"]
    assert tool.context.trace_id == call.context.trace_id
    assert (call.attributes or {})["gen_ai.tool.name"] == "get_current_time"
    assert (call.attributes or {})["wayline.tenant"] == platform.tenant
