"""Tools that charge, called over `/mcp`: the money is held before they act and counted after."""

from __future__ import annotations

import asyncio
from decimal import Decimal

from wayline.contracts.budgets import Budget, BudgetConfig, BudgetList, ListBudgets, PutBudget
from wayline.contracts.traces import CostTable, GetCosts
from wayline.testkit import Platform, until
from wayline.testkit.effects_server import EffectsServer

from .conftest import Door, with_effects
from .test_tools import PAY

PRICE = Decimal("0.01")
"""What the effects server says that a payment charged."""


async def paying(platform: Platform, effects: EffectsServer, *services: str, limit_usd: Decimal) -> Door:
    """Start a gateway, a payment whose most is declared, and a budget."""
    door = await with_effects(platform, effects, *services, tools={"pay_once": {"charge": {"usd": "0.01"}}})
    put = PutBudget(tenant="default", name="month", config=BudgetConfig(limit_usd=limit_usd))
    await platform.bus.ask(put, Budget)
    return door


async def until_month_is(platform: Platform, **figures: Decimal) -> None:
    async def so() -> bool:
        [month] = (await platform.bus.ask(ListBudgets(tenant="default"), BudgetList)).budgets
        return all(getattr(month, f"{name}_usd") == usd for name, usd in figures.items())

    await until(so, why=f"the budget shows {figures}")


async def test_a_call_that_a_budget_has_no_room_for_is_refused(platform: Platform, effects: EffectsServer):
    door = await paying(platform, effects, limit_usd=Decimal("0.015"))

    async with door.client() as client:
        paid = await client.call_tool(PAY, {"amount": 1}, meta={"wayline/key": "order 1"})
        await until_month_is(platform, spent=PRICE, reserved=Decimal(0))
        refused = await client.call_tool(PAY, {"amount": 2}, meta={"wayline/key": "order 2"})
        again = await client.call_tool(PAY, {"amount": 1}, meta={"wayline/key": "order 1"})

    assert (refused.is_error, refused.meta["wayline/error"]) == (True, "no_budget")
    assert "budget 'month' has no room for a call of up to $0.01" in refused.content[0].text
    # A call that was paid for before is answered from the ledger.
    assert again.content == paid.content
    assert effects.amounts() == [1]


async def test_calls_at_once_never_overspend_a_budget(platform: Platform, effects: EffectsServer):
    effects.delay_ms = 300
    door = await paying(platform, effects, limit_usd=2 * PRICE)

    async with door.client() as client:
        results = await asyncio.gather(*(client.call_tool(PAY, {"amount": number}) for number in range(6)))

    await until_month_is(platform, spent=2 * PRICE, reserved=Decimal(0))
    assert sorted(result.is_error for result in results) == [False, False, True, True, True, True]
    assert effects.count("pay_once") == 2


async def test_a_call_of_unknown_outcome_counts_as_unsettled(platform: Platform, effects: EffectsServer):
    effects.delay_ms = 60_000
    door = await paying(platform, effects, "tracing", limit_usd=Decimal(1))

    async with door.client() as client:
        calling = asyncio.create_task(client.call_tool(PAY, {"amount": 1}))
        await until_month_is(platform, reserved=PRICE)
        await until(lambda: effects.has_begun("pay_once"), why="the call is with its server")
        effects.kill()
        lost = await calling

    await until_month_is(platform, spent=Decimal(0), reserved=Decimal(0), unsettled=PRICE)
    assert lost.meta["wayline/error"] == "unknown"

    async def recorded() -> bool:
        table = await platform.bus.ask(GetCosts(tenant="default", group_by=("tool",)), CostTable)
        return [row.unsettled_upper_usd for row in table.rows] == [PRICE]

    await until(recorded, why="the ledger shows what it may have cost")


async def test_a_call_whose_client_left_is_counted(platform: Platform, effects: EffectsServer):
    effects.delay_ms = 1_500
    door = await paying(platform, effects, limit_usd=Decimal(1))

    async with door.client() as client:
        calling = asyncio.create_task(client.call_tool(PAY, {"amount": 1}))
        await until_month_is(platform, reserved=PRICE)
        calling.cancel()
        await asyncio.wait({calling})

        await until_month_is(platform, reserved=Decimal(0))
    [month] = (await platform.bus.ask(ListBudgets(tenant="default"), BudgetList)).budgets
    assert month.spent_usd + month.unsettled_usd >= PRICE * effects.count("pay_once")
