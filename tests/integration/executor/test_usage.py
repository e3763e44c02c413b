"""What a provider says it used, whichever way its call ends: settled where it was said, between bounds where not."""

from collections.abc import AsyncIterator

import pytest

from wayline.contracts import events as e
from wayline.executor.settings import Settings
from wayline.llm.catalogue import bundled
from wayline.testkit import until
from wayline.testkit.simulator import Asked, Charge, Fault, Say, Simulator

from .conftest import Stage

GPT = "openai/gpt-6-sol"
WORDS = "The moon pulls the sea. " * 20


@pytest.fixture
async def simulator() -> AsyncIterator[Simulator]:
    async with Simulator() as provider:
        yield provider


async def play(stage: Stage, simulator: Simulator, model: str, *faults: Fault) -> list[e.Event]:
    """A job's log: its calls meet one fault after another, then none."""

    def script(asked: Asked) -> Say:
        n = len(simulator.requests) - 1
        return Say(text=WORDS, fault=faults[n] if n < len(faults) else Fault())

    simulator.script = script
    url = simulator.openai_url
    await stage.start(Settings(openai_base_url=url, openai_api_key="simulated", chat_base_url=url))
    await stage.begin("j1", model, cards=bundled())
    assert (await stage.ended("j1")).status == "completed"
    return await stage.events("j1")


async def charged(simulator: Simulator, n: int) -> list[Charge]:
    await until(lambda: len(simulator.bill.charges) == n, why=f"{n} requests are on the bill")
    return simulator.bill.charges


async def test_a_response_that_failed_and_was_counted_is_settled_to_the_cent(stage: Stage, simulator: Simulator):
    events = await play(stage, simulator, GPT, Fault(fails_at_end=True))

    [failed] = [event for event in events if isinstance(event, e.ModelFailed)]
    [lost, paid] = await charged(simulator, 2)
    assert (lost.outcome, lost.usage_delivered) == ("failed", True)
    assert (failed.error.code, failed.unsettled) == ("server_error", None)
    assert (failed.usage, failed.cost_usd) == (lost.usage, lost.usd) and lost.usd > 0
    job = await stage.job("j1")
    assert (job.cost_usd, job.costs.unsettled_calls) == (lost.usd + paid.usd, 0)
    assert job.usage == lost.usage + paid.usage
