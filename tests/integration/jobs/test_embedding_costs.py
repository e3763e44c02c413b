"""Embeddings are paid for like any call: the ledger, the budgets and the jobs say what the provider bills."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import pytest_asyncio

from wayline.contracts import events as e
from wayline.contracts.budgets import Budget, BudgetConfig, BudgetList, ListBudgets, PutBudget
from wayline.contracts.knowledge import SearchKnowledge, SearchResult
from wayline.contracts.tools import CallTool, ToolReply
from wayline.contracts.traces import CostGroup, CostRow, CostTable, GetCosts, GetTrace, Trace
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.retrieval.settings import Settings as RetrievalSettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Asked, Fault, Faults, Say, Simulator, rounds
from wayline.simulator.scripts.fault_choices import no_faults
from wayline.testkit import Platform, until

from .conftest import index_document
from .ended_jobs import differences
from .four_models import CLAUDE, endpoints

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

EMBEDS = "text-embedding-3-small"
TEXT = "".join(f"Lease {n} is renewed every two seconds while its tool runs.\n\n" for n in range(400))
SEARCHES = rounds(Say(tools=(("search_knowledge", {"query": "How often is a lease renewed?"}),)), Say(text="Often."))


def embedding(simulator: Simulator, **more: Any) -> RetrievalSettings:
    where = {"embedding_base_url": simulator.openai_url, "embedding_api_key": "simulated"}
    return RetrievalSettings(embedding_model=EMBEDS, embedding_batch=16, **where, **more)


@dataclass
class Stage:
    """Every service for the tests without settings of their own, and what plays the providers."""

    platform: Platform
    simulator: Simulator

    async def play(self, faults: Faults = no_faults) -> Platform:
        """Have the providers fail as told, for a tenant of the test's own with a hard budget."""
        self.simulator.play(SEARCHES, faults=faults)
        platform = await self.platform.new_tenant()
        await put_budget(platform, "5")
        return platform


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(module_platform: Platform) -> AsyncIterator[Stage]:
    simulator = await module_platform.simulate(SEARCHES)
    await start(module_platform, simulator)
    yield Stage(module_platform, simulator)
    assert await differences(module_platform.bus) == []


@pytest.fixture
async def simulator() -> AsyncIterator[Simulator]:
    async with Simulator(SEARCHES) as simulator:
        yield simulator


async def start(platform: Platform, simulator: Simulator, **retrieval: Any) -> None:
    """Start every service, with a hard budget that counts the whole tenant."""
    where = endpoints(simulator)
    await platform.start(
        *("router", "executor", "tool_registry", "retrieval", "tracing"),
        router=RouterSettings(**where),
        executor=ExecutorSettings(**where),
        retrieval=embedding(simulator, **retrieval),
    )
    await put_budget(platform, "5")


async def put_budget(platform: Platform, limit_usd: str) -> None:
    config = BudgetConfig(limit_usd=Decimal(limit_usd), window="month", hard=True)
    await platform.bus.ask(PutBudget(tenant=platform.tenant, name="all", config=config), Budget)


async def spent(platform: Platform) -> Budget:
    reply = await platform.bus.ask(ListBudgets(tenant=platform.tenant, name="all"), BudgetList)
    return reply.budgets[0]


async def ledger(platform: Platform, *group_by: CostGroup) -> tuple[CostRow, ...]:
    table = await platform.bus.ask(GetCosts(tenant=platform.tenant, group_by=group_by), CostTable)
    return table.rows


async def reported(platform: Platform) -> None:
    """Wait until retrieval has nothing left to report."""

    async def nothing() -> bool:
        async with platform.superuser() as conn:
            left = "SELECT count(*) FROM retrieval.embedding_calls WHERE tenant = $1"
            return not await conn.fetchval(left, platform.tenant)

    await until(nothing, why="every embedding is reported")


async def ask_agent(platform: Platform, job_id: str) -> Any:
    await platform.put_agent("looker", instructions="You look things up.", tools=("search_knowledge",))
    await platform.submit(job_id, "How often is a lease renewed?", agent="looker", model=CLAUDE)
    return await platform.wait_for(job_id)


async def test_ledger_budget_and_bill_agree_on_documents_searches_and_jobs(stage: Stage):
    platform = await stage.play()
    await index_document(platform, "d1", "leases.md", TEXT)
    await platform.bus.ask(SearchKnowledge(tenant=platform.tenant, query="lease"), SearchResult)
    job = await ask_agent(platform, "j1")
    await reported(platform)

    bill = stage.simulator.bill
    embedded = {charge.attempt: charge.usd for charge in bill.charges if charge.wire == "embeddings"}
    assert len(embedded) > 3 and all(embedded.values())
    chat = sum((charge.usd for charge in bill.charges if charge.wire != "embeddings"), Decimal(0))
    async with platform.superuser() as conn:
        counted = "SELECT * FROM tracing.ledger WHERE purpose = 'embedding' AND tenant = $1"
        rows = await conn.fetch(counted, platform.tenant)
    told = {row["attempt_id"]: row["cost_usd"] for row in rows}

    # The job's own search is in its log; everything else is in the ledger, call by call.
    [search] = [event for event in await platform.events("j1") if isinstance(event, e.ToolCompleted)]
    assert search.cost_usd is not None and search.cost_usd > 0
    assert {attempt: embedded[attempt] for attempt in told} == told
    assert sum(told.values()) + search.cost_usd == sum(embedded.values())
    assert (job.cost_usd, job.costs.tool) == (chat + search.cost_usd, {"search_knowledge": search.cost_usd})
    await until(lambda: settled(platform, bill.usd), why="the budget counts what is billed")
    await until(lambda: listed(platform, bill.usd), why="the ledger has what is billed")


async def test_a_search_by_a_tool_of_no_job_is_counted_once(stage: Stage):
    platform = await stage.play()
    await index_document(platform, "d1", "leases.md", TEXT)
    call = CallTool(
        tenant=platform.tenant,
        key=f"{platform.tenant}/mcp_1/1/1",
        job_id="mcp_1",
        step=1,
        call="1",
        tool="search_knowledge",
        arguments={"query": "lease"},
        deadline=datetime.now(UTC) + timedelta(minutes=1),
        direct=True,
    )

    reply = await platform.bus.ask(call, ToolReply)

    assert (reply.status, reply.cost_usd) == ("success", None)
    await reported(platform)
    assert sum(charge.usd for charge in stage.simulator.bill.charges[-1:]) > 0
    await until(lambda: settled(platform, stage.simulator.bill.usd), why="the budget counts what is billed")
    await until(lambda: listed(platform, stage.simulator.bill.usd), why="the ledger has what is billed")


@pytest.mark.asyncio(loop_scope="function")
@pytest.mark.parametrize(("variable", "value"), [("OTEL_TRACES_SAMPLER", "always_off"), ("OTEL_SDK_DISABLED", "true")])
async def test_costs_and_the_jobs_tree_need_no_recorded_span(
    platform: Platform, simulator: Simulator, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
):
    monkeypatch.setenv(variable, value)
    await start(platform, simulator)
    await index_document(platform, "d1", "leases.md", TEXT)
    job = await ask_agent(platform, "j1")
    await reported(platform)

    await until(lambda: settled(platform, simulator.bill.usd), within=60, why="the budget counts what is billed")
    await until(lambda: listed(platform, simulator.bill.usd), within=60, why="the ledger has what is billed")
    # The ledger and the tree are filled by readers of their own: the one does not wait for the other.
    trace = await until(lambda: traced(platform, job.cost_usd), within=60, why="the tree has what the job cost")
    assert trace is not None
    assert [step.name for step in trace.root.children] == ["step 1", "step 2"]
    assert [span.name for span in trace.root.children[0].children] == [
        "chat claude-sonnet-5-5",
        "execute_tool search_knowledge",
    ]
    async with platform.superuser() as conn:
        assert await conn.fetchval("SELECT count(*) FROM tracing.spans WHERE seq = 0") == 0


async def traced(platform: Platform, usd: Decimal) -> Trace | None:
    """Return the trace of `j1` once it has both steps and all that they cost."""
    trace = await platform.bus.ask(GetTrace(tenant=platform.tenant, job_id="j1"), Trace)
    return trace if trace.totals.cost_usd == usd and len(trace.root.children) == 2 else None


async def listed(platform: Platform, usd: Decimal) -> bool:
    return sum(row.cost_usd for row in await ledger(platform, "model", "kind")) == usd


async def settled(platform: Platform, usd: Decimal) -> bool:
    budget = await spent(platform)
    return (budget.spent_usd, budget.reserved_usd, budget.unsettled_usd) == (usd, 0, 0)


async def test_a_hard_budget_without_room_refuses_a_document(stage: Stage):
    platform = await stage.play()
    await put_budget(platform, "0.000000010")
    stored = await index_document(platform, "d1", "leases.md", TEXT[:100], status="failed")

    assert "The budget 'all' has no room for an embedding of up to $0.00000" in str(stored.error)
    assert stage.simulator.bill.charges == []
    await reported(platform)
    assert await settled(platform, Decimal(0))


def cut_once() -> Any:
    """The first call of the embedding provider is cut in its answer, and billed."""
    seen: list[Asked] = []

    def faults(asked: Asked) -> Fault:
        seen.append(asked)
        return Fault(cut_at_byte=40) if len(seen) == 1 else Fault()

    return faults


async def test_a_call_whose_answer_was_lost_is_unsettled_between_bounds(stage: Stage):
    platform = await stage.play(faults=cut_once())
    await index_document(platform, "d1", "leases.md", "A lease is renewed every two seconds.")
    await reported(platform)

    lost, paid = [charge.usd for charge in stage.simulator.bill.charges]
    [row] = await ledger(platform, "kind")
    assert (row.cost_usd, row.calls, row.calls_unsettled) == (paid, 2, 1)
    assert row.unsettled_lower_usd == 0
    assert row.unsettled_upper_usd is not None and row.unsettled_upper_usd >= lost
    budget = await spent(platform)
    assert (budget.spent_usd, budget.unsettled_usd) == (paid, row.unsettled_upper_usd)


@pytest.mark.asyncio(loop_scope="function")
async def test_an_unknown_price_is_never_zero(platform: Platform):
    async with Simulator(SEARCHES) as simulator:
        simulator.models |= {"mystery-embedding": simulator.models[EMBEDS]}
        await platform.start(
            "router",
            "retrieval",
            "tracing",
            retrieval=embedding(simulator).model_copy(update={"embedding_model": "mystery-embedding"}),
        )
        await index_document(platform, "d1", "leases.md", "A lease is renewed every two seconds.")
        paid = await platform.bus.ask(
            SearchKnowledge(tenant=platform.tenant, query="lease", caller_pays=True), SearchResult
        )
        await reported(platform)

    assert paid.cost_usd is None
    [row] = await ledger(platform, "kind")
    assert (row.calls, row.calls_unknown, row.cost_usd) == (2, 2, 0)


async def test_a_call_whose_process_was_killed_is_reported_with_its_bounds(stage: Stage):
    platform = await stage.play()
    async with platform.superuser() as conn:
        await conn.execute(
            "INSERT INTO retrieval.embedding_calls (tenant, charge_id, model, worst_usd, at) "
            "VALUES ($1, 'embedding/killed', 'm', 0.002, now() - interval '1 hour'), "
            "($1, 'embedding/running', 'm', 0.002, now())",
            platform.tenant,
        )

    async def told() -> bool:
        return bool(await ledger(platform, "kind"))

    await until(told, why="the killed call is in the ledger")
    [row] = await ledger(platform, "kind")
    assert (row.calls, row.calls_unsettled, row.cost_usd) == (1, 1, 0)
    assert (row.unsettled_lower_usd, row.unsettled_upper_usd) == (0, Decimal("0.002"))
