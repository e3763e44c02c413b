"""Long tool results summarised by a helper model: paid like any call, recorded once, and read back whole."""

from __future__ import annotations

from decimal import Decimal

import pytest

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig, Routing
from wayline.contracts.models import ModelCard, Prices, PutModel, Rates
from wayline.executor.decide.result_summary import SUMMARY_TOKENS_MAX
from wayline.executor.replay import replay
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.llm.catalogue import bundled
from wayline.llm.tokens import estimate
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Asked, Fault, Say, Simulator
from wayline.testkit import Platform, until
from wayline.testkit.walks import cases

from .conftest import with_tools
from .test_discovering import LONG, archive, box, listing

SONNET = "anthropic/claude-sonnet-5-5"
SUMMARY = "Six thousand pages; the treasure is on page 4321."
AGENT = AgentConfig(
    instructions="Find the treasure.",
    routing=Routing(mode="auto", fast="flash", primary=SONNET, escalation=SONNET),
    tools=("box__archive",),
    ask_when_tainted=False,
)


def aside(attempt: str) -> bool:
    return attempt.rpartition("/")[2].startswith("a")


def script(asked: Asked) -> Say:
    if aside(asked.attempt):
        return Say(text=SUMMARY)
    step = int(asked.attempt.split("/")[2])
    if step == 1:
        return Say(tools=(("box__archive", {}),))
    if step == 2:
        return Say(tools=(("recall_details", {"step": 1, "call": "1", "query": "treasure"}),))
    return Say(text="On page 4321.")


async def run(
    platform: Platform, provider: Simulator, *, config: AgentConfig, dear_helper: bool = False
) -> list[e.Event]:
    urls = {"anthropic_base_url": provider.url}
    router, executor = RouterSettings(**urls), ExecutorSettings(**urls, tool_wait_s=2.0)
    services = ("router", "tool_registry", "executor", "tracing")
    async with box(archive) as server:
        registry = with_tools({**server.settings(), "trusted": True})
        await platform.start(*services, router=router, executor=executor, tool_registry=registry)
        await listing(platform, "archive")
        if dear_helper:
            flash = [card for card in bundled() if card.provider == "anthropic" and card.tier == "flash"]
            prices = Prices(rates=Rates(input=Decimal(100), output=Decimal(500)))
            for card in flash:
                dear = PutModel(tenant="default", card=card.model_copy(update={"prices": prices}))
                await platform.bus.ask(dear, ModelCard)
        await platform.put_agent("seeker", config)
        await platform.submit("j1", "Where is the treasure?", agent="seeker", task_type="drafting", budget_usd="2")
        job = await platform.wait_for("j1")
    assert job.status == "completed", job.error
    events = await platform.events("j1")
    assert replay(events).divergence is None
    return events


def results(provider: Simulator) -> list[str]:
    """The result of the first step, as each later prompt holds it."""
    prompts = [asked for asked in provider.requests if not aside(asked.attempt)][1:]
    return [next(turn.text for turn in asked.turns if turn.role == "tool") for asked in prompts]


async def test_a_long_result_is_shown_as_its_summary_and_read_back(platform: Platform):
    async with Simulator(script) as provider:
        events = await run(platform, provider, config=AGENT.model_copy(update={"summarize_results": True}))

    [summarized] = [event for event in events if isinstance(event, e.ResultSummarized)]
    [asked] = [event for event in events if isinstance(event, e.AuxiliaryRequested)]
    [paid] = [event for event in events if isinstance(event, e.AuxiliaryCompleted)]
    first, recalled = [event for event in events if isinstance(event, e.ToolCompleted)]
    assert (asked.purpose, asked.about, asked.worst_usd is not None) == ("summary", "1/1", True)
    assert first.full == LONG
    assert estimate(summarized.content) <= SUMMARY_TOKENS_MAX
    assert SUMMARY in summarized.content
    assert 'recall_details {"step": 1, "call": "1"}' in summarized.content
    assert "page 4321: the treasure" in recalled.content
    helper = next(one for one in provider.requests if aside(one.attempt))
    assert "Where is the treasure?" in helper.text
    assert "page 0: nothing" in helper.text
    # Every call is in one bill, and nothing else is.
    job = await platform.job("j1")
    assert job.money.cost_usd == provider.bill.usd
    assert paid.cost_usd == job.money.costs.aux["summary"]
    assert paid.cost_usd == sum((one.usd for one in provider.bill.charges if aside(one.attempt)), Decimal(0))
    assert all(SUMMARY in text for text in results(provider))
    breaks = {event.cache_break for event in events if isinstance(event, e.ModelRequested)}
    assert breaks == {None}

    async def in_ledger() -> bool:
        async with platform.superuser() as conn:
            rows = await conn.fetch("SELECT cost_usd FROM tracing.ledger WHERE job_id = 'j1'")
        return sum((row["cost_usd"] or Decimal(0) for row in rows), Decimal(0)) == provider.bill.usd

    await until(in_ledger, why="the ledger has every call")


@pytest.mark.parametrize("why", cases(["off", "the helper fails", "too dear"]))
async def test_without_a_summary_the_extract_is_shown(platform: Platform, why: str):
    async with Simulator(script) as provider:
        if why == "the helper fails":
            provider.faults = lambda asked: Fault(error="overloaded") if aside(asked.attempt) else Fault()
        config = AGENT.model_copy(update={"summarize_results": why != "off"})
        events = await run(platform, provider, config=config, dear_helper=why == "too dear")

    failed = [event.error.code for event in events if isinstance(event, e.AuxiliaryFailed)]
    made = [one for one in provider.requests if aside(one.attempt)]
    assert [event for event in events if isinstance(event, e.ResultSummarized)] == []
    assert (len(failed), len(made)) == {"off": (0, 0), "the helper fails": (1, 1), "too dear": (1, 0)}[why]
    assert failed != ["not_made"] or why == "too dear"
    assert all("Shortened from about" in text for text in results(provider))
    assert (await platform.job("j1")).money.cost_usd == provider.bill.usd
