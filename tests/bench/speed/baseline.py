"""What a job's CPU was before, as ratios to the floor of the same run: a run that needs much more fails.

The machine may be half as fast as on the day before, and the floor with it: no number of seconds is compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from .load import FLOOR, OURS
from .measures import Sustained

RECORDED = Path(__file__).with_name("baseline.json")
WHOLE = "all processes"
GROWTH_MAX = 0.10
"""How much more CPU a job may need than was recorded."""
TOLD_FROM = 0.02
"""A process that needs less of the floor's CPU is not worth a line."""


def ratios(sustained: Mapping[str, Sequence[Sustained]]) -> dict[str, float]:
    """Return the CPU of a job by process, and of all of them, over what the floor needs for one: medians of rounds."""
    rounds = list(zip(sustained[OURS], sustained[FLOOR], strict=False))
    if not rounds:
        return {}
    found = {WHOLE: median(ours.total_cpu_ms / floor.total_cpu_ms for ours, floor in rounds)}
    for name in sorted(rounds[0][0].cpu_ms):
        found[name] = median(ours.cpu_ms[name] / floor.total_cpu_ms for ours, floor in rounds)
    return {name: round(ratio, 3) for name, ratio in found.items() if ratio >= TOLD_FROM}


def read(path: Path = RECORDED) -> dict[str, float]:
    """Return the recorded ratios."""
    return json.loads(path.read_text())["ratios"]


def write(found: Mapping[str, float], *, rounds: int, path: Path = RECORDED) -> None:
    """Record these ratios in the place of those before."""
    value = {"of": f"{datetime.now(UTC):%Y-%m-%d}, {rounds} rounds", "ratios": dict(found)}
    path.write_text(json.dumps(value, indent=1) + "\n")


def compare(found: Mapping[str, float], before: Mapping[str, float]) -> tuple[bool, str]:
    """Return whether a job needs no more CPU than it may, and how each process has changed, as a table."""
    lines = [f"{'CPU a job, over the floor':<28}{'before':>8}{'now':>8}{'change':>9}"]
    for name in sorted(found.keys() | before.keys(), key=lambda one: (one != WHOLE, one)):
        was, now = before.get(name), found.get(name)
        change = f"{now / was - 1:+.0%}" if was and now is not None else ""
        cells = ("" if value is None else f"{value:.2f}" for value in (was, now))
        lines.append(f"{name:<28}{next(cells):>8}{next(cells):>8}{change:>9}")
    holds = found[WHOLE] <= before[WHOLE] * (1 + GROWTH_MAX)
    if not holds:
        lines.append(
            f"A job needs over {GROWTH_MAX:.0%} more CPU than was recorded. Find out why, or --record-baseline."
        )
    return holds, "\n".join(lines)
