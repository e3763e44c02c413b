"""The twenty-step job on providers that keep their real cache rules: nothing that could be read is paid for again."""

from __future__ import annotations

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from wayline.contracts import events as e
from wayline.llm import ModelError

simulator = pytest.importorskip("wayline.simulator", reason="the provider simulator is not here")
anthropic = pytest.importorskip("wayline.llm.anthropic", reason="the adapters are not here")
openai = pytest.importorskip("wayline.llm.openai", reason="the adapters are not here")

_spec = importlib.util.spec_from_file_location(
    "prompt_scenario", Path(__file__).parents[2] / "bench" / "prompts" / "scenario.py"
)
assert _spec and _spec.loader
scenario = sys.modules.setdefault("prompt_scenario", importlib.util.module_from_spec(_spec))
_spec.loader.exec_module(scenario)

WIRES = sorted(scenario.CARDS)


def script(asked: Any) -> Any:
    text, tools = scenario.says(asked.number)
    return simulator.Say(text=text, tools=tools, thinking=f"What now, at {asked.number}?")


async def played(
    wire: str, wrap: Any = lambda model: model, *, heard: list[Any] | None = None
) -> tuple[list[e.Event], list[Any]]:
    """The job's log and the provider's bill; `heard` takes what the provider was asked."""
    async with simulator.Simulator(script) as provider:
        model = (
            anthropic.Anthropic(provider.url)
            if wire == "anthropic"
            else openai.OpenAI(provider.openai_url, api_key="k")
        )
        try:
            events = await scenario.play(scenario.CARDS[wire], wrap(model))
        finally:
            await model.close()
        if heard is not None:
            heard += provider.requests
        return events, provider.bill.charges


@pytest.mark.parametrize("wire", WIRES)
async def test_each_request_reads_the_whole_cache_of_the_one_before(wire):
    _, bill = await played(wire)

    assert len(bill) == scenario.STEPS
    for before, after in pairwise(bill):
        assert after.usage.cache_read == before.usage.cache_read + before.usage.cache_write_5m, after.attempt
    used = [charge.usage for charge in bill]
    assert sum(one.cache_read for one in used) / sum(one.input for one in used) > 0.9


@pytest.mark.parametrize("wire", WIRES)
async def test_our_figures_are_the_providers_bill_and_no_break_was_avoidable(wire):
    events, bill = await played(wire)

    counted = [event.usage for event in events if isinstance(event, e.ModelCompleted)]
    assert counted == [charge.usage for charge in bill]
    asked = [event for event in events if isinstance(event, e.ModelRequested)]
    assert [event.cache_break for event in asked] == [None] * scenario.STEPS
    kinds = {type(event) for event in events}
    assert {e.ToolsDiscovered, e.ContextInjected} <= kinds


@pytest.mark.parametrize("wire", WIRES)
async def test_the_time_stays_in_the_users_message_unchanged(wire):
    heard: list[Any] = []
    await played(wire, heard=heard)

    asked = {next(turn.text for turn in one.turns if turn.role == "user") for one in heard}
    assert [text.count("Sent on 2026-01-05, a Monday, at 09:00 UTC.") for text in asked] == [1]


async def test_a_sliding_window_is_refused_where_thinking_is_bound():
    with pytest.raises(ModelError) as refused:
        await played("anthropic", lambda model: scenario.Reshaped(model, scenario.sliding_window))

    assert refused.value.code == "invalid_request"
