"""What an append-only prompt saves: jobs of twenty steps, assembled in different ways, billed by the simulator.

    python -m tests.bench.prompts [--wire anthropic|openai] [--write docs/performance.md]

Cached is the share of input tokens that were billed as read from the cache. The bill is the simulator's own: it keeps
the provider's cache rules and knows nothing of our bookkeeping.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from wayline.llm import Model, ModelRequest
from wayline.llm.anthropic import Anthropic
from wayline.llm.openai import OpenAI
from wayline.simulator import Asked, Say, Simulator

from .. import page
from .scenario import (
    CARDS,
    STEPS,
    Reshaped,
    clock_in_the_system_prompt,
    play,
    relisted_tools,
    says,
    sliding_window,
    without_marks,
)

JOBS = 3
"""One after another, within the cache's time: what an agent's jobs have in common counts too."""

Way = Callable[[str], Model]
"""Makes the model that asks the provider at an address."""


@dataclass(frozen=True)
class Bill:
    name: str
    input: int
    read: int
    written: int
    usd: Decimal


def script(asked: Asked) -> Say:
    text, tools = says((asked.number - 1) % STEPS + 1)
    return Say(text=text, tools=tools)


class MarkedAsAWhole(Anthropic):
    """The request marked as a whole: the provider puts one breakpoint after its last block."""

    def build_body(self, request: ModelRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
        body, notes = super().build_body(without_marks(request))
        return {**body, "cache_control": {"type": "ephemeral"}}, notes


def ways(wire: str) -> dict[str, Way]:
    """Ways of assembling the same conversation, ours first."""
    ours: Way = Anthropic if wire == "anthropic" else OpenAI

    def reshaped(reshape: Callable[[ModelRequest], ModelRequest]) -> Way:
        return lambda url: Reshaped(ours(url), reshape)

    marked: dict[str, Way] = {"one top-level breakpoint": MarkedAsAWhole, "no breakpoint": reshaped(without_marks)}
    return {
        "ours": ours,
        **(marked if wire == "anthropic" else {}),
        "tools as they are listed": reshaped(relisted_tools),
        "sliding window": reshaped(sliding_window),
        "the time in the system prompt": reshaped(clock_in_the_system_prompt),
    }


async def measure(wire: str, name: str, way: Way, *, jobs: int = JOBS) -> Bill:
    async with Simulator(script) as simulator:
        model = way(simulator.url if wire == "anthropic" else simulator.openai_url)
        # Without thinking: a window that drops messages is refused outright where thinking is bound to them.
        card = CARDS[wire].model_copy(update={"reasoning": "none"})
        try:
            for number in range(jobs):
                await play(card, model, number=number)
        finally:
            await model.close()
        used = [charge.usage for charge in simulator.bill.charges]
        return Bill(
            name,
            sum(one.input for one in used) // jobs,
            sum(one.cache_read for one in used) // jobs,
            sum(one.cache_write_5m for one in used) // jobs,
            simulator.bill.usd / jobs,
        )


async def bills(wire: str) -> list[Bill]:
    return [await measure(wire, name, way) for name, way in ways(wire).items()]


def report(billed: Mapping[str, Sequence[Bill]]) -> str:
    """One table a model; ours comes first, and the others are held against it."""
    facts = f"{STEPS} steps a job, {JOBS} jobs one after another; the bill is the simulator's.\n"
    return "\n".join([facts, *(_table(model, one) for model, one in billed.items())])


def _table(model: str, billed: Sequence[Bill]) -> str:
    ours = billed[0]
    head = [model, "input tokens a job", "read", "written", "cached", "USD a job", "against ours"]
    tokens = [[f"{one.input:,}", f"{one.read:,}", f"{one.written:,}", f"{one.read / one.input:.1%}"] for one in billed]
    dollars = [[f"{one.usd:.4f}", f"{one.usd / ours.usd:.2f} times"] for one in billed]
    names = [[one.name] for one in billed]
    return page.table(head, [[*a, *b, *c] for a, b, c in zip(names, tokens, dollars, strict=True)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wire", choices=sorted(CARDS), action="append")
    parser.add_argument("--write", type=Path, help="put the tables into this file, between their markers")
    asked = parser.parse_args()
    billed = {CARDS[wire].name: asyncio.run(bills(wire)) for wire in asked.wire or sorted(CARDS)}
    text = report(billed)
    print(text)
    if asked.write:
        page.write(asked.write, "prompts", text)


if __name__ == "__main__":
    main()
