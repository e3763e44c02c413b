"""How right plans are, by words alone and with a model that says what it knows, and how long they take.

    python -m tests.evals.planning [--write docs/agents.md]

The set is in WAYLINE_SHARED, or in `shared` beside the repository; without it it says so and writes nothing.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.bench import page

from ..shared import path
from .measures import SAMPLE_EVERY, SECONDS_MAX, SET, Measured, decided, goals, shop, through_every_service

MADE_BY, PART = "make plan-quality", "plans"
HEAD = (
    "plans",
    "model",
    "valid waves",
    "dependencies found",
    "of those found right",
    "tools in order",
    "whole",
    "usual, slowest",
)


def report() -> str:
    """Measure everything, as a table."""
    known = goals()
    sample = [*known[::SAMPLE_EVERY], shop()]
    lines = [
        _line(f"{len(known):,} of WorFBench", "none", decided(known, model=False)),
        _line("", "scripted", decided(known, model=True)),
        _line("the shop: 30 tasks, 45 dependencies, 3 cycles", "none", decided([shop()], model=False)),
        _line(
            f"{len(sample)} of these as jobs, through every service", "none", through_every_service(sample, model=False)
        ),
        _line("", "scripted", through_every_service(sample, model=True)),
    ]
    return page.table(HEAD, lines)


def _line(what: str, model: str, found: Measured) -> list[str]:
    def share(part: int) -> str:
        return f"{part / found.plans:.1%}"

    took = f"{found.usual_s:.2f} s, {found.slowest_s:.2f} s{'' if found.slowest_s < SECONDS_MAX else ' **too slow**'}"
    found_shares = [f"{found.recall:.1%} of {found.gold:,}", f"{found.precision:.1%}"]
    return [what, model, share(found.valid), *found_shares, share(found.in_order), share(found.whole), took]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--write", type=Path, help="the page whose table is replaced")
    write: Path | None = arguments.parse_args().write
    if not path(*SET).exists():
        print(f"not measured: {path(*SET)} is not here; set WAYLINE_SHARED")
        return
    text = report()
    print(text)
    if write is not None:
        page.write(write, PART, text, by=MADE_BY)


if __name__ == "__main__":
    main()
