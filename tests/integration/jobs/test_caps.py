"""Budgets with nothing faked but the provider, which writes a bill of its own: who is admitted, who waits, who goes on.

A call of the metered model costs three cents at most, to the nano-dollar: only its 30 words of answer cost anything.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
import pytest_asyncio

from wayline.contracts.budgets import Budget, BudgetConfig, BudgetList, ListBudgets, PutBudget
from wayline.contracts.events import ModelRequested
from wayline.contracts.jobs import JobView
from wayline.contracts.models import ModelCard, Prices, PutModel, Rates
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Asked, Facts, Fault, Say, Simulator
from wayline.simulator import Rates as BilledRates
from wayline.testkit import Platform, until

from .ended_jobs import differences

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

USD = Decimal
METERED = "metered"
DOLLARS_PER_MILLION = USD(1_000)
OUTPUT_MAX = 30
WORST = USD("0.03")
JOBS, ADMITTED = 60, 33
SLOTS = 20
"""Of an executor: one alone cannot hold all that are admitted."""
CLOCK = (("get_current_time", {}),)
ROUTER = RouterSettings(chat_base_url="http://127.0.0.1:9/v1", budgets_every_s=0.05)


@dataclass
class Town:
    """Two routers, two executors, one provider that says what each call costs; the jobs are of one tenant."""

    platform: Platform
    provider: Simulator
    output_tokens: int = OUTPUT_MAX
    calls: int = 1
    """Of each job: all but the last one ask for the time."""
    held: asyncio.Event = field(default_factory=asyncio.Event)
    """Until then no call is answered."""

    def say(self, asked: Asked) -> Say:
        done = sum(bool(turn.calls) for turn in asked.turns)
        tools = CLOCK if done + 1 < self.calls else ()
        fault = Fault(hold=self.held)
        return Say(text=f"part {done + 1}.", tools=tools, output_tokens=self.output_tokens, fault=fault)

    async def budget(self, limit: str) -> Budget:
        config = BudgetConfig(limit_usd=USD(limit))
        return await self.platform.bus.ask(PutBudget(tenant=self.platform.tenant, name="cap", config=config), Budget)

    async def used(self) -> Budget:
        [budget] = (await self.platform.bus.ask(ListBudgets(tenant=self.platform.tenant), BudgetList)).budgets
        return budget

    async def submit(self, *jobs: str, **options: Any) -> None:
        more = {"model": f"chat/{METERED}", "max_output_tokens": OUTPUT_MAX, **options}
        await asyncio.gather(*(self.platform.submit(job, agent="teller", **more) for job in jobs))

    async def ended(self, *jobs: str) -> list[JobView]:
        return list(await asyncio.gather(*(self.platform.wait_for(job) for job in jobs)))

    async def until_parked(self, *jobs: str) -> None:
        for job in jobs:
            await self.platform.wait_until(job, lambda found: found.life.waiting is not None, f"{job} is parked")

    async def until_settled(self) -> None:
        await self.platform.wait_until_empty("SUBMIT", "RUN")

    def attempts(self) -> list[str]:
        """Of every request, as the provider heard them, without the tenant."""
        return [asked.attempt.partition("/")[2] for asked in self.provider.requests]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def provider(module_platform: Platform) -> AsyncIterator[Simulator]:
    async with Simulator(models={METERED: metered()}) as provider:
        settings = {
            "router": ROUTER,
            "executor": ExecutorSettings(chat_base_url=provider.openai_url, interactive_slots=SLOTS, tool_wait_s=2.0),
        }
        await module_platform.start("router", "executor", "router", "executor", "tool_registry", **settings)
        yield provider
        assert await differences(module_platform.bus) == []


@pytest_asyncio.fixture(loop_scope="module")
async def town(module_platform: Platform, provider: Simulator) -> AsyncIterator[Town]:
    town = Town(await module_platform.new_tenant(), provider)
    provider.play(town.say)
    rates = Rates(input=USD(0), output=DOLLARS_PER_MILLION)
    card = ModelCard(provider="chat", model=METERED, tier="standard", prices=Prices(rates=rates))
    await town.platform.bus.ask(PutModel(tenant=town.platform.tenant, card=card), ModelCard)
    await town.platform.put_agent("teller", instructions="Tell.", tools=("get_current_time",))
    yield town
    town.held.set()


def metered() -> Facts:
    return Facts(name=METERED, provider="local", rates=BilledRates(output=DOLLARS_PER_MILLION))


def names(n: int) -> list[str]:
    return [f"j{number}" for number in range(n)]


async def test_under_a_dollar_33_of_60_three_cent_jobs_run(town: Town):
    town.held.set()
    await town.budget("1.00")

    await town.submit(*names(JOBS))
    ended = await town.ended(*names(JOBS))
    await town.until_settled()

    codes = Counter((view.status, view.error.code if view.error else None) for view in ended)
    assert codes == {("completed", None): ADMITTED, ("failed", "budget_exhausted"): JOBS - ADMITTED}
    assert len(town.provider.bill.charges) == len(set(town.attempts())) == ADMITTED
    assert town.provider.bill.usd == sum(view.cost_usd or 0 for view in ended) == ADMITTED * WORST == USD("0.99")
    asked = [e for view in ended for e in await town.platform.events(view.job_id) if isinstance(e, ModelRequested)]
    assert {event.worst_usd for event in asked} == {WORST}
    used = await town.used()
    assert (used.spent_usd, used.reserved_usd, used.unsettled_usd) == (USD("0.99"), 0, 0)


async def test_jobs_parked_at_a_tenants_cap_use_the_unspent_rest(town: Town):
    town.output_tokens = 10
    await town.budget("1.00")
    await town.submit(*names(JOBS), at_cap="park")

    async def decided() -> bool:
        used = await town.used()
        return used.waiting_jobs == JOBS - ADMITTED and len(town.provider.requests) == ADMITTED

    await until(decided, why="33 jobs call the model and 27 wait for money")
    assert (await town.used()).reserved_usd == ADMITTED * WORST

    town.held.set()
    ended = await town.ended(*names(JOBS))
    await town.until_settled()

    assert {view.status for view in ended} == {"completed"}
    assert sorted(town.attempts()) == sorted(f"{job}/1/m1" for job in names(JOBS))
    assert town.provider.bill.usd == (await town.used()).spent_usd == JOBS * USD("0.01")


async def test_a_job_raised_at_its_own_cap_finishes_repeating_no_call(town: Town):
    town.held.set()
    town.calls = 3
    await town.submit("j1", at_cap="park", budget_usd="0.05")
    await town.until_parked("j1")
    assert town.attempts() == ["j1/1/m1"]

    await town.platform.signal("j1", type="budget", budget_usd="0.09")
    [done] = await town.ended("j1")

    assert (done.status, done.partial, done.cost_usd) == ("completed", False, 3 * WORST)
    assert town.attempts() == [f"j1/{step}/m1" for step in (1, 2, 3)]
    assert town.provider.bill.usd == 3 * WORST


async def test_a_raised_tenant_cap_resumes_a_job_repeating_no_call(town: Town):
    town.held.set()
    town.calls = 3
    await town.budget("0.05")
    await town.submit("j1", at_cap="park")
    await town.until_parked("j1")
    assert town.attempts() == ["j1/1/m1"]

    await town.budget("0.09")
    [done] = await town.ended("j1")

    assert (done.status, done.partial, done.cost_usd) == ("completed", False, 3 * WORST)
    assert town.attempts() == [f"j1/{step}/m1" for step in (1, 2, 3)]
    await town.until_settled()
    assert town.provider.bill.usd == (await town.used()).spent_usd == 3 * WORST


async def test_a_job_above_its_own_cap_still_waits_for_the_tenants(town: Town):
    town.held.set()
    town.calls = 3
    await town.budget("0.07")
    await town.submit("j1", at_cap="park", budget_usd="0.04")
    await town.until_parked("j1")

    await town.platform.signal("j1", type="budget", budget_usd="0.10")
    waits = await town.platform.wait_until(
        "j1", lambda job: job.life.waiting is not None and job.model.step == 2, "it waits again, before its third call"
    )
    assert waits.life.waiting is not None and "budget 'cap'" in (waits.life.waiting.question or "")
    assert len(town.attempts()) == 2

    await town.budget("0.09")
    [done] = await town.ended("j1")
    assert (done.status, done.cost_usd) == ("completed", 3 * WORST)
    assert town.attempts() == [f"j1/{step}/m1" for step in (1, 2, 3)]


async def test_of_two_budgets_the_tighter_one_ends_each_job(town: Town):
    town.held.set()
    town.calls = 3
    await town.budget("0.10")

    await town.submit("narrow", budget_usd="0.05")
    [narrow] = await town.ended("narrow")
    await town.until_settled()
    await town.submit("wide", budget_usd="0.50")
    [wide] = await town.ended("wide")
    await town.until_settled()

    assert (narrow.status, narrow.partial, narrow.cost_usd) == ("completed", True, WORST)
    assert (wide.status, wide.partial, wide.cost_usd) == ("completed", True, 2 * WORST)
    assert town.provider.bill.usd == (await town.used()).spent_usd == USD("0.09")
