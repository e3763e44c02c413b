"""Tools that charge: the money is held before they act, and what they charged is in their job's cost once."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from wayline.contracts import events as e
from wayline.contracts.budgets import Budget, BudgetConfig, BudgetList, ListBudgets, PutBudget
from wayline.contracts.models import ModelCard, Prices, PutModel, Rates
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.testkit import Platform, until
from wayline.testkit.effects_server import EffectsServer

from .conftest import chatting, until_listed, with_tools

PAY = "effects__pay_once"
PRICE = Decimal("0.01")
"""What the effects server says that a payment charged."""
CARD = ModelCard(
    provider="chat",
    model="m",
    tier="standard",
    prices=Prices(rates=Rates(input=Decimal(0), output=Decimal(0)), source="a test"),
)


async def begin(platform: Platform, effects: EffectsServer, chat: ChatServer, *, most: str = "0.01") -> None:
    """Start the platform with a payment whose most is declared, and an agent that may make it."""
    await effects.start()
    tools = with_tools(effects.settings(tools={"pay_once": {"charge": {"usd": most}}}))
    router = RouterSettings(chat_base_url=chat.url)
    await platform.start(
        "router", "executor", "tool_registry", router=router, executor=chatting(chat), tool_registry=tools
    )
    await until_listed(platform, PAY)
    await platform.bus.ask(PutModel(tenant="default", card=CARD), ModelCard)
    await platform.put_agent("payer", tools=(PAY,), ask="never")


async def submit(platform: Platform, job_id: str = "j1", **options: Any) -> None:
    await platform.submit(job_id, agent="payer", model="chat/m", **options)


async def payments(platform: Platform, job_id: str = "j1") -> list[e.ToolCompleted]:
    return await platform.events_of(job_id, e.ToolCompleted)


def paying(*amounts: int) -> Say:
    return Say(tools=tuple((PAY, {"amount": amount}) for amount in amounts))


DONE = Say(text="all done")


async def test_a_call_beyond_the_budget_is_refused_and_never_made(platform: Platform, effects: EffectsServer):
    async with ChatServer(turns(paying(1), DONE)) as chat:
        await begin(platform, effects, chat, most="0.06")

        await submit(platform, budget_usd="0.05")

        ended = await platform.wait_for("j1")
        [refused] = await payments(platform)
        shown = chat.calls[-1][1]["messages"][-1]["content"]
    assert (ended.status, ended.cost_usd, effects.calls()) == ("completed", Decimal(0), [])
    assert refused.error is not None and refused.error.code == "refused"
    assert "has no room for a call of up to $0.06" in refused.error.message
    assert refused.error.message in shown


async def test_of_calls_beside_each_other_those_that_fit_are_made(platform: Platform, effects: EffectsServer):
    async with ChatServer(turns(paying(1, 2, 3), DONE)) as chat:
        await begin(platform, effects, chat)

        await submit(platform, budget_usd="0.025")

        ended = await platform.wait_for("j1")
        codes = {one.call: one.error and one.error.code for one in await payments(platform)}
    assert codes == {"1": None, "2": None, "3": "refused"}
    assert (ended.cost_usd, sorted(effects.amounts())) == (2 * PRICE, [1, 2])


async def test_jobs_that_share_a_hard_budget_never_overspend_it(platform: Platform, effects: EffectsServer):
    jobs = [f"j{n}" for n in range(4)]
    async with ChatServer(turns(paying(1), DONE)) as chat:
        await begin(platform, effects, chat)
        config = BudgetConfig(limit_usd=2 * PRICE)
        await platform.bus.ask(PutBudget(tenant="default", name="cap", config=config), Budget)

        await asyncio.gather(*(submit(platform, job_id) for job_id in jobs))
        ended = [await platform.wait_for(job_id) for job_id in jobs]

        async def settled() -> bool:
            [cap] = (await platform.bus.ask(ListBudgets(tenant="default"), BudgetList)).budgets
            return (cap.spent_usd, cap.reserved_usd) == (2 * PRICE, 0)

        await until(settled, why="what two jobs paid is spent and nothing is held")
    assert sorted(one.cost_usd or 0 for one in ended) == [0, 0, PRICE, PRICE]
    assert effects.count("pay_once") == 2


@pytest.mark.parametrize(("outcome", "cost", "most"), [("failed", 0, "0.02"), ("retry", PRICE, "0.02")])
async def test_an_unknown_call_leaves_bounds_of_what_it_charged(
    platform: Platform, effects: EffectsServer, outcome: str, cost: Decimal, most: str
):
    effects.delay_ms = 60_000
    async with ChatServer(turns(paying(1), DONE)) as chat:
        await begin(platform, effects, chat, most="0.02")
        await submit(platform, budget_usd="0.05")
        await until(lambda: effects.has_begun("pay_once", "default/j1/1/1"), why="the call has begun")
        effects.kill()
        job = await platform.wait_until_parked("j1")
        assert job.life.waiting is not None
        # What it may have charged stays held while a person looks.
        assert job.money.held_usd == Decimal("0.02")
        effects.delay_ms = 0
        await effects.start()

        await platform.signal("j1", type="answer", decision_id=job.life.waiting.wait_id, outcome=outcome)

        ended = await platform.wait_for("j1")
        costs = (await platform.job("j1")).money.costs
    assert (ended.status, ended.cost_usd) == ("completed", cost)
    assert (costs.unsettled_calls, costs.unsettled_upper_usd) == (1, Decimal(most))
