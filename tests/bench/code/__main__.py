"""What a program costs: its first turn, each call in it, and running it again from its recorded results.

python -m tests.bench.code [--write docs/performance.md]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Awaitable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TypeVar

from wayline.contracts.tools import ToolDefinition
from wayline.sandbox import Program, ProgramCall, Recording, Returned, Sandbox, Suspended, make_stubs, rerun

from .. import page

T = TypeVar("T")

CALLS = 50
ROUNDS = 10
RESULT = [{"id": n, "text": "x" * 200} for n in range(10)]
CODE = f"""
found = []
for n in range({CALLS}):
    page = await fetch(number=n)
    found += [row["id"] for row in page if row["id"] > n]
len(found)
"""


async def timed(doing: Awaitable[T]) -> tuple[float, T]:
    """Return the milliseconds that something takes, and what it returns."""
    began = time.perf_counter()
    found = await doing
    return (time.perf_counter() - began) * 1_000, found


async def measure() -> dict[str, float]:
    """Return medians in milliseconds."""
    schema = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
    stubs = make_stubs([ToolDefinition(name="fetch", input_schema=schema)])
    program = Program(CODE, stubs, datetime(2026, 1, 1, tzinfo=UTC), "bench")
    firsts, turns, size = [], [], 0
    async with Sandbox() as sandbox:
        for _ in range(ROUNDS):
            took, turn = await timed(sandbox.start(program))
            firsts.append(took)
            while isinstance(turn, Suspended):
                size = len(turn.dump)
                took, turn = await timed(sandbox.resume(program, turn, [(turn.asked, Returned(RESULT))]))
                turns.append(took)
        calls = {n: ProgramCall(n, "fetch", {"number": n - 1}) for n in range(1, CALLS + 1)}
        recording = Recording(calls, [(n, Returned(RESULT)) for n in range(1, CALLS + 1)])
        again, _ = await timed(rerun(sandbox, program, recording))
    return {"first": median(firsts), "call": median(turns), "again": again, "size": size}


def report(found: dict[str, float], load_before: float) -> str:
    lines = [
        ["type check and first turn", f"{found['first']:.1f} ms"],
        ["each call: its answer in, the next call out, in a worker process of its own", f"{found['call']:.1f} ms"],
        [f"running again from {CALLS} recorded results", f"{found['again']:.0f} ms"],
        ["a suspended program", f"{found['size'] / 1_000:.1f} kB"],
    ]
    return f"{page.machine(load_before)}\n\n{page.table(['code mode', 'median'], lines)}"


def main() -> None:
    parser = argparse.ArgumentParser(description="What a program costs.")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    asked = parser.parse_args()
    load_before = os.getloadavg()[0]
    text = report(asyncio.run(measure()), load_before)
    if asked.write:
        page.write(asked.write, "code", text)
    print(text)


if __name__ == "__main__":
    main()
