"""The results as a table: medians with their range, ratios within the run, and what the issue asks for."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from cold import STEPS, Cold
from load import FLOOR, OURS
from measures import P50_MAX_MS, THINKING_MS, Alone, Memory, Recovery, Sustained
from stage import ACK_WAIT_S

BEGIN, END = "<!-- made by `make bench`: begin -->", "<!-- made by `make bench`: end -->"


@dataclass
class Results:
    """Everything one run has measured; lists hold a value a round."""

    alone: dict[str, list[Alone]] = field(default_factory=lambda: {FLOOR: [], OURS: []})
    sustained: dict[str, list[Sustained]] = field(default_factory=lambda: {FLOOR: [], OURS: []})
    most: dict[str, list[int]] = field(default_factory=lambda: {FLOOR: [], OURS: []})
    memory: dict[str, list[Memory]] = field(default_factory=lambda: {FLOOR: [], OURS: []})
    recovery: list[Recovery] = field(default_factory=list)
    cold: Cold | None = None
    boot_s: dict[str, float] = field(default_factory=dict)
    rss_mb: dict[str, float] = field(default_factory=dict)
    up_s: list[float] = field(default_factory=list)
    load_before: float = 0.0


@dataclass(frozen=True)
class Row:
    """One measure: the floor's values, ours, and what is asked of the ratio or of our own number."""

    name: str
    ours: Sequence[float]
    floor: Sequence[float] = ()
    digits: int = 0
    ratio_at_least: tuple[float, float] | None = None
    """Of the floor's number: the must and the aim."""
    at_most: tuple[float, float] | None = None

    def cells(self) -> list[str]:
        must, aim = self._asked()
        return [self.name, self._said(self.floor), self._said(self.ours), self._ratio_said(), must, aim, self._held()]

    @property
    def ratios(self) -> list[float]:
        """Ours over the floor's, round by round."""
        return [one / other for one, other in zip(self.ours, self.floor, strict=False) if other]

    def _ratio_said(self) -> str:
        return _spread(self.ratios, digits=2)

    def _said(self, values: Sequence[float]) -> str:
        return _spread(values, digits=self.digits)

    def _asked(self) -> tuple[str, str]:
        if self.ratio_at_least:
            must, aim = self.ratio_at_least
            return f"ratio ≥ {must:.2f}", f"≥ {aim:.2f}"
        if self.at_most:
            must, aim = self.at_most
            return f"≤ {must:g}", f"≤ {aim:g}"
        return "", ""

    def _held(self) -> str:
        """Which bound every round has met: a bound that only the lucky rounds meet is not held."""
        if not self.ours:
            return "not measured"
        if self.ratio_at_least:
            must, aim = (min(self.ratios, default=0) >= bound for bound in self.ratio_at_least)
        elif self.at_most:
            must, aim = (max(self.ours) <= bound for bound in self.at_most)
        else:
            return ""
        return "aim" if aim else "must" if must else "**missed**"


def _spread(values: Sequence[float], *, digits: int) -> str:
    if not values:
        return ""
    middle, least, most = (f"{value:,.{digits}f}" for value in (median(values), min(values), max(values)))
    return middle if len(values) == 1 else f"{middle} [{least}..{most}]"


def table(results: Results) -> str:
    """The whole report."""
    head = ["measure", "floor", "Wayline", "ratio", "must", "aim", "held"]
    measures = [head, ["---"] * len(head), *(row.cells() for row in _rows(results))]
    return "\n".join([_facts(results), "", *map(_line, measures), "", *map(_line, _processes(results))]) + "\n"


def write(path: Path, text: str) -> None:
    """Put the report between its markers; what is around them stays."""
    old = path.read_text() if path.exists() else f"# Performance\n\n{BEGIN}\n{END}\n"
    before, _, rest = old.partition(BEGIN)
    path.write_text(f"{before}{BEGIN}\n{text}{END}{rest.partition(END)[2]}")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _facts(results: Results) -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    kind = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs ({kind}), {memory_gib:.0f} GiB, "
        f"Python {platform.python_version()}, load average before the run {results.load_before:.1f}. "
        f"{len(results.sustained[OURS])} rounds, floor and Wayline in turn: median [least..most]."
    )


def _rows(results: Results) -> list[Row]:
    alone, sustained = results.alone, results.sustained
    recovery = results.recovery
    rows = [
        _both("overhead of a job, 1 in flight, p50 ms", alone, "p50_ms", digits=1),
        _both("overhead of a job, 1 in flight, p99 ms", alone, "p99_ms", digits=1),
        _both("jobs/s, 64 in flight, one executor", sustained, "jobs_per_s", ratio_at_least=(1 / 3, 1 / 2)),
        Row("executor, CPU ms a job", [s.cpu_ms["executor"] for s in sustained[OURS]], digits=2, at_most=(6, 3)),
        _both("all processes, CPU ms a job, spans on", sustained, "total_cpu_ms", digits=2, at_most=(10, 6)),
        Row("last result to last span stored, s", [s.caught_up_s for s in sustained[OURS]], digits=1),
        Row(
            f"jobs in flight, {THINKING_MS} ms model, p50 ≤ {P50_MAX_MS:.0f} ms",
            results.most[OURS],
            results.most[FLOOR],
            ratio_at_least=(1 / 3, 1 / 2),
        ),
        _both("MB per 1,000 in flight", results.memory, "per_thousand_mb", digits=1, at_most=(30, 20)),
        Row("`wayline up`, initialised, s until ready", results.up_s, digits=1, at_most=(5, 2)),
        Row(
            f"kill -9 of one of two executors, ack_wait {ACK_WAIT_S:.0f} s: last job taken over after s",
            [r.taken_over_s for r in recovery],
            digits=1,
        ),
        Row("… last job done after s", [r.done_s for r in recovery], digits=1),
    ]
    if (cold := results.cold) is not None:
        rows += [
            Row(f"{STEPS} tool calls of 5 KB, {cold.tokens // 1_000}k tokens: log, MB", [cold.log_mb], digits=2),
            Row("… requests to read it back", [cold.requests]),
            Row("… read and folded cold, s", [cold.seconds], digits=2),
        ]
    return rows


def _both(name: str, values: dict[str, Sequence[object]], field_name: str, **asked: Any) -> Row:
    """A measure that was taken of both engines."""
    floor, ours = ([getattr(value, field_name) for value in values.get(engine, ())] for engine in (FLOOR, OURS))
    return Row(name, ours, floor, **asked)


def _processes(results: Results) -> list[list[str]]:
    """Where the CPU goes, and what each process weighs."""
    rows = [["process", "CPU ms a job", "RSS, MB", "boot, s"], ["---"] * 4]
    for engine in (OURS, FLOOR):
        rounds = results.sustained[engine]
        for name in rounds[0].cpu_ms if rounds else ():
            cpu = median(one.cpu_ms[name] for one in rounds)
            rss, boot = results.rss_mb.get(name), results.boot_s.get(name)
            label = f"{name} (under the floor)" if engine == FLOOR and name != FLOOR else name
            rows.append([label, f"{cpu:.2f}", f"{rss:.0f}" if rss else "", f"{boot:.1f}" if boot else ""])
    return rows
