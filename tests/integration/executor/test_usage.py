"""What a provider says it used, whichever way its call ends: settled where it was said, between bounds where not."""

from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest

from wayline.contracts import events as e
from wayline.contracts.budgets import SettleJob
from wayline.contracts.models import ModelCard, Prices, Rates
from wayline.executor.settings import Settings
from wayline.llm.catalogue import bundled
from wayline.simulator import Asked, Charge, Facts, Fault, Say, Simulator
from wayline.simulator import Rates as BilledRates
from wayline.testkit import until
from wayline.testkit.walks import cases

from .conftest import ExecutorPlatform

CLAUDE, GPT, OWN = "anthropic/claude-sonnet-5-5", "openai/gpt-6-sol", "chat/metered"
RATES = {"input": Decimal("0.30"), "output": Decimal("1.20")}
FACTS = {"metered": Facts(name="metered", provider="local", rates=BilledRates(**RATES))}
CARDS = (*bundled(), ModelCard(provider="chat", model="metered", tier="flash", prices=Prices(rates=Rates(**RATES))))
WORDS = "The moon pulls the sea. " * 10


@pytest.fixture
async def simulator() -> AsyncIterator[Simulator]:
    async with Simulator(models=FACTS) as provider:
        yield provider


async def play(
    platform: ExecutorPlatform, simulator: Simulator, model: str, *faults: Fault, **begun: Any
) -> list[e.Event]:
    """A job's log: its calls meet one fault after another, then none."""

    def script(asked: Asked) -> Say:
        n = len(simulator.requests) - 1
        return Say(text=WORDS, fault=faults[n] if n < len(faults) else Fault())

    simulator.script = script
    url, key = simulator.openai_url, "simulated"
    claude = {"anthropic_base_url": simulator.url, "anthropic_api_key": key}
    await platform.start(
        "executor", executor=Settings(openai_base_url=url, openai_api_key=key, chat_base_url=url, **claude)
    )
    await platform.begin("j1", model, cards=CARDS, held_usd=Decimal(1), **begun)
    assert (await platform.wait_for("j1")).status == "completed"
    return await platform.events("j1")


async def charged(simulator: Simulator, n: int) -> list[Charge]:
    await until(lambda: len(simulator.bill.charges) == n, why=f"{n} requests are on the bill")
    return simulator.bill.charges


async def test_a_failed_response_with_usage_is_settled_exactly(platform: ExecutorPlatform, simulator: Simulator):
    events = await play(platform, simulator, GPT, Fault(fails_at_end=True))

    [failed] = [event for event in events if isinstance(event, e.ModelFailed)]
    [lost, paid] = await charged(simulator, 2)
    assert (lost.outcome, lost.usage_delivered) == ("failed", True)
    assert (failed.error.code, failed.unsettled) == ("server_error", None)
    assert (failed.usage, failed.cost_usd) == (lost.usage, lost.usd) and lost.usd > 0
    job = await platform.job("j1")
    assert (job.money.cost_usd, job.money.costs.unsettled_calls) == (lost.usd + paid.usd, 0)
    assert job.money.usage == lost.usage + paid.usage


@pytest.mark.parametrize("model", cases([CLAUDE, GPT, OWN]))
async def test_an_answer_without_usage_is_settled_between_its_bounds(
    platform: ExecutorPlatform, simulator: Simulator, model: str
):
    events = await play(platform, simulator, model, Fault(no_usage=True))

    [charge] = await charged(simulator, 1)
    [answered] = [event for event in events if isinstance(event, e.ModelCompleted)]
    bounds = answered.unsettled
    assert (charge.usage_delivered, answered.message.text, answered.cost_usd) == (False, WORDS, None)
    assert bounds is not None and bounds.lower_usd is not None and bounds.upper_usd is not None
    assert 0 < bounds.lower_usd <= charge.usd <= bounds.upper_usd
    costs = (await platform.job("j1")).money.costs
    assert (costs.model, costs.unsettled_calls) == ({}, 1)
    assert (costs.unsettled_lower_usd, costs.unsettled_upper_usd) == (bounds.lower_usd, bounds.upper_usd)
    [settled] = platform.budgets.of(SettleJob)
    assert (settled.cost_usd, settled.unsettled_usd) == (0, bounds.upper_usd), "a budget counts its most"


async def test_a_failed_auxiliary_call_with_usage_is_settled_exactly(platform: ExecutorPlatform, simulator: Simulator):
    events = await play(platform, simulator, OWN, Fault(fails_at_end=True), classifier=GPT, tasks={"search": None})

    [failed] = [event for event in events if isinstance(event, e.AuxiliaryFailed)]
    [lost, paid] = await charged(simulator, 2)
    assert (failed.error.code, failed.unsettled) == ("server_error", None)
    assert (failed.usage, failed.cost_usd) == (lost.usage, lost.usd) and lost.usd > 0
    job = await platform.job("j1")
    assert (job.money.cost_usd, job.money.costs.unsettled_calls) == (lost.usd + paid.usd, 0)
    assert (job.money.costs.aux, job.money.usage) == ({"classification": lost.usd}, lost.usage + paid.usage)


async def test_an_auxiliary_call_without_usage_lies_between_its_bounds(
    platform: ExecutorPlatform, simulator: Simulator
):
    events = await play(platform, simulator, OWN, Fault(no_usage=True), classifier=GPT, tasks={"search": None})

    [answered] = [event for event in events if isinstance(event, e.AuxiliaryCompleted)]
    [untold, paid] = await charged(simulator, 2)
    bounds = answered.unsettled
    assert answered.cost_usd is None and bounds is not None
    assert bounds.lower_usd is not None and bounds.upper_usd is not None
    assert 0 < bounds.lower_usd <= untold.usd <= bounds.upper_usd
    job = await platform.job("j1")
    assert (job.money.cost_usd, job.money.costs.aux, job.money.costs.unsettled_calls) == (paid.usd, {}, 1)
    assert any(isinstance(event, e.TaskClassified) for event in events), "its answer is read all the same"
