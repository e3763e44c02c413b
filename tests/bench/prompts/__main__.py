"""What an append-only prompt saves: jobs of twenty steps, assembled in different ways, billed by the simulator.

    python tests/bench/prompts [--wire anthropic|openai]

Cached is the share of input tokens that were billed as read from the cache. The bill is the simulator's own: it keeps
the provider's cache rules and knows nothing of our bookkeeping.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from scenario import (
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

from wayline.llm import Model
from wayline.llm.anthropic import Anthropic
from wayline.llm.openai import OpenAI
from wayline.testkit.simulator import Asked, Say, Simulator

JOBS = 3
"""One after another, within the cache's time: what an agent's jobs have in common counts too."""

Wrap = Callable[[Model], Model]


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


def one_top_level_mark(model: Model) -> Model:
    """The request marked as a whole: the provider puts one breakpoint after its last block."""
    sdk: Any = model._sdk  # type: ignore[attr-defined]
    stream = sdk.stream
    sdk.stream = lambda request, said, reply: stream(request, {**said, "cache_control": {"type": "ephemeral"}}, reply)
    return Reshaped(model, without_marks)


def ways(wire: str) -> dict[str, Wrap]:
    """Ways of assembling the same conversation, ours first."""
    one_mark: dict[str, Wrap] = {"one top-level breakpoint": one_top_level_mark} if wire == "anthropic" else {}
    return {
        "ours": lambda model: model,
        **one_mark,
        "tools as they are listed": lambda model: Reshaped(model, relisted_tools),
        "sliding window": lambda model: Reshaped(model, sliding_window),
        "the time in the system prompt": lambda model: Reshaped(model, clock_in_the_system_prompt),
    }


async def measure(wire: str, name: str, wrap: Wrap) -> Bill:
    async with Simulator(script) as simulator:
        model = wrap(Anthropic(simulator.url) if wire == "anthropic" else OpenAI(simulator.openai_url))
        # Without thinking: a window that drops messages is refused outright where thinking is bound to them.
        card = CARDS[wire].model_copy(update={"reasoning": "none"})
        try:
            for number in range(JOBS):
                await play(card, model, number=number)
        finally:
            await model.close()
        used = [charge.usage for charge in simulator.bill.charges]
        return Bill(
            name,
            sum(one.input for one in used) // JOBS,
            sum(one.cache_read for one in used) // JOBS,
            sum(one.cache_write_5m for one in used) // JOBS,
            simulator.bill.usd / JOBS,
        )


async def run(wire: str) -> None:
    bills = [await measure(wire, name, wrap) for name, wrap in ways(wire).items()]
    ours = bills[0]
    print(f"\n| {CARDS[wire].name} | input tokens a job | read | written | cached | USD a job | against ours |")
    print("|---|---|---|---|---|---|---|")
    for bill in bills:
        share, times = bill.read / bill.input, bill.usd / ours.usd
        tokens = f"{bill.input:,} | {bill.read:,} | {bill.written:,}"
        print(f"| {bill.name} | {tokens} | {share:.1%} | {bill.usd:.4f} | {times:.2f} times |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wire", choices=sorted(CARDS), action="append")
    for chosen in parser.parse_args().wire or sorted(CARDS):
        asyncio.run(run(chosen))
