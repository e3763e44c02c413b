"""How soon pages of the console show, how much they send, and how they scroll, in Chromium against a whole platform.

python -m tests.bench.console_pages [--write docs/performance.md] [--rounds 5]

Where other work disturbs the clock, the processor time of the console and of the browser's page stands beside it, and
a blank page of the same height is the floor of scrolling.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from pathlib import Path
from statistics import median

import httpx2

from .. import page
from .large_diff import show_diff
from .look import Measured, blank, look, one_word
from .stored_jobs import CALLS, SPANS, STORED_JOBS, Bench, opened

REQUESTS, AT_ONCE = 200, 4
LOOK_WITHIN_S = 120
PART = "console_pages"
HEAD = (
    *("page", "asked: ms, kB", "first byte, ms", "last byte, ms", "first paint, ms", "work to draw it, ms", "sent, kB"),
    *("longest frame, ms", "work a frame, ms"),
)
ONCE_MORE = ", once more"
HOWS = ("", ONCE_MORE)
"""In a browser that has just begun and holds nothing, or coming back to it from another page."""
SCROLLS = {"scrolls": True}
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def _cpu_s(pid: int) -> float:
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / TICKS_A_SECOND


async def requests_a_core(bench: Bench) -> float:
    """Return how many times a second of one core the console answers with the list of jobs."""
    async with httpx2.AsyncClient(base_url=bench.url, trust_env=False, timeout=60) as http:

        async def some() -> None:
            for _ in range(REQUESTS // AT_ONCE):
                (await http.get("/jobs")).raise_for_status()

        before = _cpu_s(bench.console.pid)
        await asyncio.gather(*(some() for _ in range(AT_ONCE)))
        return REQUESTS / (_cpu_s(bench.console.pid) - before)


async def measure(home: Path, rounds: int) -> str:
    """Look at every page so many times, and return the table."""
    load = os.getloadavg()[0]
    async with opened(home) as bench, one_word() as word:
        floor, floor_once_more = (Measured(f"one word, from a server that does nothing else{how}", "") for how in HOWS)
        of_trace, of_calls = f"/jobs/{bench.many_spans}?view=trace", f"/jobs/{bench.many_calls}"
        trace, calls = f"a job of {SPANS:,} spans, its trace", f"a job of {CALLS} tool calls"
        from_keys = {"after": f"{bench.url}/keys"}
        pages = [
            (Measured(f"Keys, the smallest page{ONCE_MORE}", ""), "/keys", {"after": f"{bench.url}/kit"}),
            (Measured("Home", "paint 100, 150 kB"), "/", {}),
            (Measured(f"Home{ONCE_MORE}", "paint 100, 40 kB"), "/", from_keys),
            (Measured(f"Jobs, {STORED_JOBS:,} stored{ONCE_MORE}", "answer 150, 40 kB"), "/jobs", from_keys | SCROLLS),
            (Measured(trace, "paint 300, 1,000 kB, frame 50"), of_trace, SCROLLS),
            (Measured(f"{trace}{ONCE_MORE}", "paint 300"), of_trace, from_keys),
            (Measured(calls, "paint 300, 1,000 kB, frame 50"), of_calls, SCROLLS),
            (Measured(f"{calls}{ONCE_MORE}", "paint 300"), of_calls, from_keys),
        ]
        empty, diff = Measured("a blank page as high", ""), Measured("a difference of 5 MB", "300 with what renders it")
        cpu_ms = list[float]()
        for _ in range(rounds):
            await look(bench.browser, floor, word)
            await look(bench.browser, floor_once_more, word, after=word)
            for one, path, how in pages:
                async with asyncio.timeout(LOOK_WITHIN_S):
                    await look(bench.browser, one, f"{bench.url}{path}", **how)
            await blank(bench.browser, empty)
            await show_diff(bench, diff, cpu_ms)
        a_core = await requests_a_core(bench)
    table = page.table(
        HEAD,
        [floor.cells(), floor_once_more.cells(), *(one.cells() for one, _, _ in pages), empty.cells(), diff.cells()],
    )
    return (
        f"{page.machine(load)} Median [least..most] of {rounds} rounds.\n\n{table}\n"
        f"The list of jobs is answered {a_core:.0f} times a second of the console's processor time (asked: 40); the "
        f"difference of 5 MB takes {median(cpu_ms):.0f} ms of it to be read and rendered.\n"
    )


def main() -> None:
    """Measure, print, and write where asked."""
    parser = argparse.ArgumentParser(description="How soon pages of the console show, and how they scroll.")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        # Postgres runs as another user where we are root.
        home.chmod(0o711)
        text = asyncio.run(measure(home, asked.rounds))
    if asked.write:
        page.write(asked.write, PART, text, by="make console-bench")
    print(text)


if __name__ == "__main__":
    main()
