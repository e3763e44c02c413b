"""What a job may spend where nobody said so, through every service; and what planning one tells over HTTP."""

from __future__ import annotations

from decimal import Decimal

import httpx2
import pytest

from wayline.contracts.budgets import Budget, BudgetConfig, BudgetList, ListBudgets, PutBudget
from wayline.contracts.jobs import JobOptions, PlanJob, Planned, SubmitJob
from wayline.contracts.models import DeleteModel, ModelCard, ModelDeleted, Prices, PutModel, Rates
from wayline.gateway.settings import Settings as GatewaySettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform

from .conftest import chatting

WORDS = 2_500
RATES = Rates(input=Decimal(0), output=Decimal(10))
CARD = ModelCard(
    provider="chat", model="priced", tier="standard", output_limit=3_000, prices=Prices(rates=RATES, source="a test")
)
"""A call costs $0.03 at most, and $0.025 where it writes so many words."""


async def begin(platform: Platform, chat: ChatServer, *more: str) -> None:
    router = RouterSettings(chat_base_url=chat.url)
    await platform.start("router", *more, router=router, executor=chatting(chat), gateway=GatewaySettings(http_port=0))
    await platform.bus.ask(PutModel(tenant="default", card=CARD), ModelCard)


async def test_a_job_without_its_own_budget_stops_before_ten_cents(platform: Platform):
    say = Say(text=" ".join(["word"] * WORDS), tools=(("get_current_time", {}),))
    async with ChatServer(lambda _: say) as chat:
        await begin(platform, chat, "executor", "tool_registry")

        await platform.submit("j1", model="chat/priced", max_steps=50)

        ended = await platform.wait_for("j1")
    # A fourth call could have taken it to $0.105.
    assert (ended.status, ended.partial, ended.cost_usd, len(chat.calls)) == ("completed", True, Decimal("0.075"), 3)
    last = (await platform.events("j1"))[-1]
    assert "the $0.1 that jobs may spend without an options.budget_usd has no room for a call of up to $0.03" in (
        last.reason or ""
    )


async def test_a_job_with_a_call_above_the_cap_is_refused_unclaimed(platform: Platform):
    async with ChatServer(lambda _: Say(text="never")) as chat:
        await begin(platform, chat, "executor", "tool_registry")
        dear = CARD.model_copy(update={"model": "dear", "output_limit": 50_000})
        await platform.bus.ask(PutModel(tenant="default", card=dear), ModelCard)

        await platform.submit("j1", model="chat/dear", max_output_tokens=50_000)
        await platform.submit("d1", model="chat/dear", max_output_tokens=50_000, dry_run=True)

        ended, planned = await platform.wait_for("j1"), await platform.wait_for("d1")
        events = [event.type for event in await platform.events("j1")]
        job = SubmitJob(agent="assistant", input="go", options=JobOptions(model="chat/dear", max_output_tokens=50_000))
        plan = await platform.bus.ask(PlanJob(tenant="default", job=job), Planned)
    assert (ended.error.code, ended.cost_usd, chat.calls) == ("budget_too_small", Decimal(0), [])
    assert "one call of chat/dear can cost $0.5, and the job may spend $0.1" in ended.error.message
    assert events == ["job.submitted", "job.failed"]
    assert (plan.refusal, planned.reason) == (
        ended.error,
        f"dry run; the job would be refused: {ended.error.message}",
    )


@pytest.mark.parametrize("limit", [None, "0.02"])
async def test_a_dry_run_over_http_returns_route_and_predicted_cost(platform: Platform, limit: str | None):
    async with ChatServer(lambda _: Say(text="never")) as chat:
        await begin(platform, chat, "gateway")
        fast = CARD.model_copy(update={"model": "fast", "tier": "flash", "output_limit": 100})
        await platform.bus.ask(PutModel(tenant="default", card=fast), ModelCard)
        if limit:
            config = BudgetConfig(limit_usd=Decimal(limit))
            await platform.bus.ask(PutBudget(tenant="default", name="cap", config=config), Budget)

        options = {"dry_run": True, "task_type": "drafting"}
        body = {"agent": "assistant", "input": "Draft a letter.", "job_id": "d1", "options": options}
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{platform.http_port}", timeout=30) as client:
            answer = await client.post("/v1/jobs", json=body)

        route = answer.json()["route"]
        least, most = map(Decimal, route["estimated_cost_range_usd"])
        assert answer.status_code == 200
        assert least <= Decimal(route["estimated_cost_usd"]) <= most <= Decimal("0.10")
        assert route["model"] == ("fast" if limit else "priced"), route["reason"]
        budgets = (await platform.bus.ask(ListBudgets(tenant="default"), BudgetList)).budgets
        assert [budget.reserved_usd + budget.spent_usd for budget in budgets] == ([Decimal(0)] if limit else [])
        assert chat.calls == []
    async with platform.superuser() as conn:
        assert await conn.fetchval("SELECT count(*) FROM router.reservations") == 0


async def test_under_a_job_budget_a_priced_model_replaces_an_unpriced_one(platform: Platform):
    async with ChatServer(lambda _: Say(text="done")) as chat:
        await begin(platform, chat, "executor", "tool_registry")
        fast = CARD.model_copy(update={"model": "fast", "tier": "flash"})
        nobody_knows = CARD.model_copy(update={"model": "dark", "prices": None})
        await platform.bus.ask(DeleteModel(tenant="default", provider="chat", model="priced"), ModelDeleted)
        for card in (fast, nobody_knows):
            await platform.bus.ask(PutModel(tenant="default", card=card), ModelCard)
        each = BudgetConfig(limit_usd=Decimal("0.05"), window="job")
        await platform.bus.ask(PutBudget(tenant="default", name="each", config=each), Budget)

        await platform.submit("j1", task_type="drafting")

        ended = await platform.wait_for("j1")
    assert (ended.status, ended.route.model) == ("completed", "fast"), ended.error
