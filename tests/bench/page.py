"""The generated parts of docs/performance.md: rows with what is asked of them, and the place where each part goes."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median


@dataclass(frozen=True)
class Row:
    """One measure: the floor's values, ours, and what is asked of the ratio or of our own number.

    Values are by round. What is asked is the must and the aim; without a must, missing the aim is a miss.
    """

    name: str
    ours: Sequence[float]
    floor: Sequence[float] = ()
    digits: int = 0
    ratio_at_least: tuple[float, float] | None = None
    ratio_at_most: tuple[float | None, float] | None = None
    at_most: tuple[float | None, float] | None = None

    def cells(self) -> list[str]:
        must, aim = self._asked()
        floor, ours = (_spread(values, digits=self.digits) for values in (self.floor, self.ours))
        return [self.name, floor, ours, _spread(self.ratios, digits=2), must, aim, self._held()]

    @property
    def ratios(self) -> list[float]:
        """Ours over the floor's, round by round."""
        return [one / other for one, other in zip(self.ours, self.floor, strict=False) if other]

    def _asked(self) -> tuple[str, str]:
        if self.ratio_at_least:
            must, aim = self.ratio_at_least
            return f"ratio ≥ {must:.2f}", f"≥ {aim:.2f}"
        if self.ratio_at_most:
            must, aim = self.ratio_at_most
            return "" if must is None else f"ratio ≤ {must:.2f}", f"ratio ≤ {aim:.2f}"
        if self.at_most:
            must, aim = self.at_most
            return "" if must is None else f"≤ {must:g}", f"≤ {aim:g}"
        return "", ""

    def _held(self) -> str:
        """Which bound every round has met: a bound that only the lucky rounds meet is not held."""
        if not self.ours:
            return "not measured"
        bounds = self.ratio_at_least or self.ratio_at_most or self.at_most
        if bounds is None:
            return ""
        values = self.ours if self.at_most else self.ratios
        if not values:
            return "not measured"
        must, aim = (bound is not None and self._meets(values, bound) for bound in bounds)
        return "aim" if aim else "must" if must else "**missed**"

    def _meets(self, values: Sequence[float], bound: float) -> bool:
        return min(values) >= bound if self.ratio_at_least else max(values) <= bound


def rows(floor: str, measured: Sequence[Row]) -> str:
    """Measures beside a floor of this name."""
    return table(["measure", floor, "Wayline", "ratio", "must", "aim", "held"], [row.cells() for row in measured])


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, ["---"] * len(head), *lines))


def machine(load_before: float) -> str:
    """Where and when a part was measured."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    kind = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs ({kind}), {memory_gib:.0f} GiB, "
        f"Python {platform.python_version()}, load average before the run {load_before:.1f}."
    )


def write(path: Path, part: str, text: str, *, by: str = "make bench") -> None:
    """Put a part between its markers; what is around them stays."""
    begin, end = (f"<!-- made by `{by}`, {part}: {edge} -->" for edge in ("begin", "end"))
    before, found, rest = path.read_text().partition(begin)
    if not found or end not in rest:
        raise SystemExit(f"{path} has no place for {part!r}: it needs the lines {begin} and {end}")
    path.write_text(f"{before}{begin}\n{text}{end}{rest.partition(end)[2]}")


def _spread(values: Sequence[float], *, digits: int) -> str:
    if not values:
        return ""
    middle, least, most = (f"{value:,.{digits}f}" for value in (median(values), min(values), max(values)))
    return middle if len(values) == 1 else f"{middle} [{least}..{most}]"
