"""What a call through our adapters costs in CPU, beside the bare SDK on the same transport.

    python -m tests.bench.adapters [--calls 128] [--write docs/performance.md]

The provider is a process of its own, so that only the caller's CPU is counted.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import uvloop

from .. import page
from . import provider
from .ways import AGAINST, OURS, SDK_RATIO_MAX, WIRES, Call, Ways, asking

ROUNDS = 5
IN_FLIGHT = 32
WARM_UP = IN_FLIGHT

Measured = Mapping[tuple[str, str], Mapping[str, Sequence[float]]]
"""By provider and length of the reply, and by way: ms of CPU a call, one a round."""


async def cpu_ms(call: Call, calls: int) -> float:
    """CPU of this process per call, so many of them in flight as a busy executor has."""

    async def one_after_another() -> None:
        for _ in range(calls // IN_FLIGHT):
            await call()

    began = time.process_time()
    await asyncio.gather(*(one_after_another() for _ in range(IN_FLIGHT)))
    return (time.process_time() - began) * 1_000 / (calls // IN_FLIGHT * IN_FLIGHT)


async def compare(ways: Ways, calls: int) -> dict[str, list[float]]:
    """Taken in turns, so that a busy machine is unkind to all."""
    for call in ways.calls.values():
        await cpu_ms(call, WARM_UP)
    found: dict[str, list[float]] = {name: [] for name in ways.calls}
    for _ in range(ROUNDS):
        for name, call in ways.calls.items():
            found[name].append(await cpu_ms(call, calls))
    return found


async def measure(url: str, calls: int) -> Measured:
    found = {}
    for name, wire in WIRES.items():
        for size in provider.WORDS:
            ways = Ways(wire, f"{url}/{size}", asking(name))
            found[name, size] = await compare(ways, calls)
            await ways.close()
    return found


def report(measured: Measured, *, load_before: float) -> str:
    rows = [
        page.Row(
            f"{name}, {provider.WORDS[size]} words, against {AGAINST[way]}",
            found[OURS],
            found[way],
            digits=2,
            ratio_at_most=(None, SDK_RATIO_MAX),
        )
        for (name, size), found in measured.items()
        for way in AGAINST
    ]
    facts = (
        f"{page.machine(load_before)} ms of CPU a call, {IN_FLIGHT} in flight; {ROUNDS} rounds: median [least..most]."
    )
    return f"{facts}\n\n{page.rows('bare SDK', rows)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=128, help="a round and way")
    parser.add_argument("--write", type=Path, help="put the table into this file, between its markers")
    asked = parser.parse_args()
    load_before = os.getloadavg()[0]
    with provider.process() as url:
        text = report(uvloop.run(measure(url, asked.calls)), load_before=load_before)
    print(text)
    if asked.write:
        page.write(asked.write, "adapters", text)


if __name__ == "__main__":
    main()
