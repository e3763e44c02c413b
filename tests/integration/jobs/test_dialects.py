"""Endpoints and accounts that take less than the documentation says: jobs work there, and cost what is billed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal

import pytest

from wayline.contracts import events as e
from wayline.contracts.agents import Agent, AgentConfig, PutAgent
from wayline.contracts.jobs import JobView
from wayline.contracts.models import ModelCard, Prices, PutModel, Rates
from wayline.contracts.money import Usage
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.llm.catalogue import bundled
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import NO_FAULT, Asked, Fault, Say, Script, Simulator, rounds
from wayline.testkit import Platform

from .conftest import with_tools
from .test_discovering import box, listing

GEMINI = "chat/gemini-3.8-flash"
GPT = "openai/gpt-6.1-terra"
PLAIN = "openai/gpt-4.1"
SEARCHES = rounds(
    Say(tools=(("box__look", {"place": "a"}), ("box__look", {"place": "b"})), thinking="Look at both of them. " * 40),
    Say(tools=(("box__look", {"place": "c"}),), thinking="One more."),
    Say(text="All three seen.", thinking="Enough was seen to answer. " * 20),
)
NO_TEMPERATURE = "temperature dropped: the model takes none"
NO_SUMMARY = "summary of thinking dropped: OpenAI shows it to verified organisations alone"


def look(place: str) -> str:
    """Look around."""
    return f"nothing at {place}"


def cards() -> list[ModelCard]:
    """A bundled card without its host, for the simulator is not at Google; and one of a model that does not reason."""
    gemini = next(card for card in bundled() if card.name == GEMINI)
    rates = Rates(input=Decimal(2), output=Decimal(8), cache_read=Decimal("0.50"), cache_write_5m=Decimal(2))
    plain = ModelCard(
        provider="openai",
        model="gpt-4.1",
        tier="standard",
        context_window=1_000_000,
        output_limit=32_768,
        temperature=True,
        prices=Prices(rates=rates),
    )
    return [gemini.model_copy(update={"host": None}), plain]


@asynccontextmanager
async def playing(platform: Platform, script: Script, *, openai_key: str) -> AsyncIterator[Simulator]:
    async with Simulator(script) as simulator, box(look) as server:
        where = {"openai_base_url": simulator.openai_url, "chat_base_url": simulator.google_url}
        keys = {"openai_api_key": openai_key, "chat_api_key": "simulated"}
        await platform.start(
            *("router", "executor", "tool_registry"),
            router=RouterSettings(**where, **keys),
            executor=ExecutorSettings(**where, **keys),
            tool_registry=with_tools(server.settings()),
        )
        await listing(platform, "look")
        for card in cards():
            await platform.bus.ask(PutModel(tenant="default", card=card), ModelCard)
        config = AgentConfig(instructions="You are an agent.", tools=("box__look",), effort="low")
        await platform.bus.ask(PutAgent(tenant="default", name="looker", config=config), Agent)
        yield simulator


async def answered(platform: Platform, simulator: Simulator, model: str) -> tuple[JobView, list[e.ModelCompleted]]:
    """Run a job to its end, and see that it cost what was billed for it; the bill, and what was answered."""
    await platform.submit("j1", "Look around.", agent="looker", model=model)
    job = await platform.wait_for("j1")
    answers = [event for event in await platform.events("j1") if isinstance(event, e.ModelCompleted)]

    assert (job.status, job.error, job.answer, job.steps) == ("completed", None, "All three seen.", 3)
    charges = [charge for charge in simulator.bill.charges if charge.outcome == "answered"]
    assert [each.usage for each in answers] == [charge.usage for charge in charges]
    assert [each.cost_usd for each in answers] == [charge.usd for charge in charges]
    assert job.cost_usd == simulator.bill.usd > 0
    return job, answers


async def test_gemini_is_called_in_its_dialect_and_thinking_is_paid(platform: Platform):
    async with playing(platform, SEARCHES, openai_key="simulated") as simulator:
        job, answers = await answered(platform, simulator, GEMINI)

    thought = sum(each.usage.reasoning for each in answers)
    assert thought > 300
    # What it cost without its thoughts, which only the sum of the tokens counts.
    seen = [each.usage.model_copy(update={"output": each.usage.output - each.usage.reasoning}) for each in answers]
    cheap = sum((used.input * Decimal("0.75") + used.output * Decimal("3.75") for used in seen), Decimal(0)) / 10**6
    assert job.cost_usd is not None
    assert job.cost_usd - cheap == thought * Decimal("3.75") / 10**6
    assert [charge.outcome for charge in simulator.bill.charges] == ["answered"] * 3
    assert not any("prompt_cache_key" in asked.body for asked in simulator.requests)


def out_of_money(asked: Asked) -> Fault:
    """OpenAI stops after its first answer."""
    return Fault(error="spend_cap") if asked.wire == "openai" and asked.results else NO_FAULT


async def test_gemini_goes_on_with_tool_calls_that_another_model_made(platform: Platform):
    async with playing(platform, SEARCHES, openai_key="simulated") as simulator:
        simulator.faults = out_of_money
        routing = {"mode": "locked", "primary": GPT, "fallbacks": [GEMINI]}
        config = {"instructions": "You are an agent.", "tools": ["box__look"], "routing": routing}
        saved = PutAgent(tenant="default", name="looker", config=AgentConfig.model_validate(config))
        await platform.bus.ask(saved, Agent)
        await platform.submit("j1", "Look around.", agent="looker")
        job = await platform.wait_for("j1")

    assert (job.status, job.answer, job.error) == ("completed", "All three seen.", None)
    assert set(job.costs.model) == {GPT, GEMINI}
    assert job.cost_usd == simulator.bill.usd


async def test_an_unverified_organisation_gets_answers_without_summaries(platform: Platform):
    async with playing(platform, SEARCHES, openai_key="unverified") as simulator:
        _, answers = await answered(platform, simulator, GPT)

    # Refused once, for nothing, and never asked for again.
    assert [charge.outcome for charge in simulator.bill.charges] == ["refused", *["answered"] * 3]
    assert [each.notes for each in answers] == [(NO_SUMMARY, NO_TEMPERATURE)] * 3
    assert all(asked.body["reasoning"] == {"effort": "low"} for asked in simulator.requests)


@pytest.mark.parametrize("key", ["simulated", "unverified"])
async def test_a_model_that_does_not_reason_is_asked_for_no_thoughts(platform: Platform, key: str):
    async with playing(platform, SEARCHES, openai_key=key) as simulator:
        _, answers = await answered(platform, simulator, PLAIN)

    assert [charge.outcome for charge in simulator.bill.charges] == ["answered"] * 3
    assert sum((each.usage for each in answers), Usage()).reasoning == 0
    assert not any(asked.body.keys() & {"include", "reasoning"} for asked in simulator.requests)
