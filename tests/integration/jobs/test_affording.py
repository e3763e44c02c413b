"""What a job may spend where nobody said so, through every service; and what planning one tells over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from decimal import Decimal

import pytest
import pytest_asyncio

from wayline.contracts.budgets import Budget, BudgetConfig, BudgetList, ListBudgets, PutBudget
from wayline.contracts.events import JobCompleted
from wayline.contracts.jobs import JobOptions, PlanJob, Planned, SubmitJob
from wayline.contracts.models import DeleteModel, ModelCard, ModelDeleted, Prices, PutModel, Rates
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator.chat_server import ChatServer, Say, Script
from wayline.testkit import Platform

from .conftest import chatting, http_with_key
from .ended_jobs import differences

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

WORDS = 2_500
RATES = Rates(input=Decimal(0), output=Decimal(10))
CARD = ModelCard(
    provider="chat", model="priced", tier="standard", output_limit=3_000, prices=Prices(rates=RATES, source="a test")
)
"""A call costs $0.03 at most, and $0.025 where it writes so many words."""


@dataclass
class Town:
    """Services whose router knows of a provider, and that provider."""

    platform: Platform
    chat: ChatServer

    async def play(self, script: Script) -> Platform:
        """Have the model follow a script, for a tenant of the test's own with a priced model."""
        self.chat.script = script
        self.chat.calls.clear()
        platform = await self.platform.new_tenant()
        await platform.bus.ask(PutModel(tenant=platform.tenant, card=CARD), ModelCard)
        return platform


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def town(module_platform: Platform) -> AsyncIterator[Town]:
    async with ChatServer(lambda _: Say()) as chat:
        services, router = ("router", "executor", "tool_registry", "gateway"), RouterSettings(chat_base_url=chat.url)
        await module_platform.start(*services, router=router, executor=chatting(chat))
        yield Town(module_platform, chat)
        assert await differences(module_platform.bus) == []


async def test_a_job_without_its_own_budget_stops_before_ten_cents(town: Town):
    say = Say(text=" ".join(["word"] * WORDS), tools=(("get_current_time", {}),))
    platform = await town.play(lambda _: say)
    await platform.submit("j1", model="chat/priced", max_steps=50)

    ended = await platform.wait_for("j1")
    # A fourth call could have taken it to $0.105.
    assert (ended.status, ended.partial, ended.cost_usd, len(town.chat.calls)) == (
        "completed",
        True,
        Decimal("0.075"),
        3,
    )
    [last] = await platform.events_of("j1", JobCompleted)
    assert "the $0.1 that jobs may spend without an options.budget_usd has no room for a call of up to $0.03" in (
        last.reason or ""
    )


async def test_a_job_with_a_call_above_the_cap_is_refused_unclaimed(town: Town):
    platform = await town.play(lambda _: Say(text="never"))
    dear = CARD.model_copy(update={"model": "dear", "output_limit": 50_000})
    await platform.bus.ask(PutModel(tenant=platform.tenant, card=dear), ModelCard)

    await platform.submit("j1", model="chat/dear", max_output_tokens=50_000)
    await platform.submit("d1", model="chat/dear", max_output_tokens=50_000, dry_run=True)

    ended, planned = await platform.wait_for("j1"), await platform.wait_for("d1")
    events = [event.type for event in await platform.events("j1")]
    job = SubmitJob(agent="assistant", input="go", options=JobOptions(model="chat/dear", max_output_tokens=50_000))
    plan = await platform.bus.ask(PlanJob(tenant=platform.tenant, job=job), Planned)
    assert ended.error is not None
    assert (ended.error.code, ended.cost_usd, town.chat.calls) == ("budget_too_small", Decimal(0), [])
    assert "one call of chat/dear can cost $0.5, and the job may spend $0.1" in ended.error.message
    assert events == ["job.submitted", "job.failed"]
    assert (plan.refusal, planned.reason) == (
        ended.error,
        f"dry run; the job would be refused: {ended.error.message}",
    )


@pytest.mark.parametrize("limit", [None, "0.02"])
async def test_a_dry_run_over_http_returns_route_and_predicted_cost(town: Town, limit: str | None):
    platform = await town.play(lambda _: Say(text="never"))
    fast = CARD.model_copy(update={"model": "fast", "tier": "flash", "output_limit": 100})
    await platform.bus.ask(PutModel(tenant=platform.tenant, card=fast), ModelCard)
    if limit:
        config = BudgetConfig(limit_usd=Decimal(limit))
        await platform.bus.ask(PutBudget(tenant=platform.tenant, name="cap", config=config), Budget)

    options = {"dry_run": True, "task_type": "drafting"}
    body = {"agent": "assistant", "input": "Draft a letter.", "job_id": "d1", "options": options}
    answer = await (await http_with_key(platform)).post("/v1/jobs", json=body)

    route = answer.json()["route"]
    least, most = map(Decimal, route["estimated_cost_range_usd"])
    assert answer.status_code == 200
    assert least <= Decimal(route["estimated_cost_usd"]) <= most <= Decimal("0.10")
    assert route["model"] == ("fast" if limit else "priced"), route["reason"]
    budgets = (await platform.bus.ask(ListBudgets(tenant=platform.tenant), BudgetList)).budgets
    assert [budget.reserved_usd + budget.spent_usd for budget in budgets] == ([Decimal(0)] if limit else [])
    assert town.chat.calls == []
    async with platform.superuser() as conn:
        held = "SELECT count(*) FROM router.reservations WHERE tenant = $1"
        assert await conn.fetchval(held, platform.tenant) == 0


async def test_under_a_job_budget_a_priced_model_replaces_an_unpriced_one(town: Town):
    platform = await town.play(lambda _: Say(text="done"))
    fast = CARD.model_copy(update={"model": "fast", "tier": "flash"})
    nobody_knows = CARD.model_copy(update={"model": "dark", "prices": None})
    await platform.bus.ask(DeleteModel(tenant=platform.tenant, provider="chat", model="priced"), ModelDeleted)
    for card in (fast, nobody_knows):
        await platform.bus.ask(PutModel(tenant=platform.tenant, card=card), ModelCard)
    each = BudgetConfig(limit_usd=Decimal("0.05"), window="job")
    await platform.bus.ask(PutBudget(tenant=platform.tenant, name="each", config=each), Budget)

    await platform.submit("j1", task_type="drafting")

    ended = await platform.wait_for("j1")
    assert (ended.status, ended.route and ended.route.model) == ("completed", "fast"), ended.error
