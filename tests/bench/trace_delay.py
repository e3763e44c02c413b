"""How soon after a job's end its trace is stored whole, while few jobs run.

python -m tests.bench.trace_delay [--jobs N] [--write docs/performance.md]

One job after the other, with a pause, on services that run as in production. All jobs are alike: the first ones tell
how many spans a whole trace has. The time is from the result's arrival at the client.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

from wayline.contracts.traces import GetTrace, Trace
from wayline.store import Store
from wayline.tracing import app

from . import page
from .speed.bench_platform import BenchPlatform, set_up, start_all
from .speed.load import OURS, Client, percentile

SERVICES = ("router", "executor", "tool_registry", "tracing")
JOBS, PAUSE_S = 200, 1.0
FIRST_JOBS, SETTLED_S = 3, 3.0
"""Jobs before the measure, and how long after its end a trace is taken to be whole."""
ASK_EVERY_S, WITHIN_S = 0.002, 30.0
WAIT_MAX_MS = 50
STORED = """
SELECT (
    SELECT count(*) FROM spans WHERE spans.trace_id = jobs.trace_id AND name <> 'process tools.list.{tenant}'
) AS spans
FROM jobs WHERE tenant = 'default' AND job_id = $1 AND ended_at IS NOT NULL"""
"""The spans of a job's trace, once tracing knows that the job has ended; not every job asks for the list of tools."""


@dataclass
class Delays:
    """How long after each result its trace was whole."""

    spans: int
    whole_ms: list[float] = field(default_factory=list)
    known_ms: list[float] = field(default_factory=list)
    """Until the job was known to have ended."""


async def stored_spans(store: Store, job_id: str) -> int:
    """Return how many spans of an ended job are stored; 0 while its end is not."""
    async with store.system() as conn:
        return await conn.fetchval(STORED, job_id) or 0


async def whole_spans(platform: BenchPlatform, client: Client, store: Store) -> int:
    """Return how many spans a whole trace has."""
    counts = set[int]()
    for _ in range(FIRST_JOBS):
        job_id = await client.job(OURS)
        await asyncio.sleep(SETTLED_S)
        counts.add(await stored_spans(store, job_id))
        trace = await platform.bus.ask(GetTrace(tenant="default", job_id=job_id), Trace)
        assert trace.totals.missing == 0, trace.totals
    assert len(counts) == 1, counts
    return counts.pop()


async def wait_for_trace(store: Store, job_id: str, delays: Delays) -> None:
    """Wait until a job's trace is whole, and note how long that took."""
    ended, known_ms, waited_ms, spans = time.perf_counter(), 0.0, 0.0, 0
    while spans < delays.spans:
        if waited_ms > WITHIN_S * 1_000:
            raise SystemExit(f"the trace of {job_id} has {spans} of {delays.spans} spans after {WITHIN_S} s")
        await asyncio.sleep(ASK_EVERY_S)
        spans = await stored_spans(store, job_id)
        waited_ms = (time.perf_counter() - ended) * 1_000
        known_ms = known_ms or (waited_ms if spans else 0.0)
    delays.known_ms.append(known_ms)
    delays.whole_ms.append(waited_ms)


async def measure(root: Path, jobs: int) -> Delays:
    """Run jobs one after the other, and wait for the trace of each."""
    async with AsyncExitStack() as stack:
        platform = await set_up(root, stack)
        await start_all(platform, services=SERVICES)
        client = await stack.enter_async_context(Client.connect(platform.nats.url))
        store = await app.open_store(platform.dsns["tracing"], pool_size=1, wait_s=5)
        stack.push_async_callback(store.close)
        delays = Delays(await whole_spans(platform, client, store))
        for _ in range(jobs):
            await wait_for_trace(store, await client.job(OURS), delays)
            await asyncio.sleep(PAUSE_S)
    return delays


def report(delays: Delays, load: float) -> str:
    """Return the table."""
    shares = 0.5, 0.9, 0.99
    rows = [
        [name, *(f"{percentile(found, share):.1f}" for share in shares), f"{_share_within(found):.1%}"]
        for name, found in (
            ("its end is stored", delays.known_ms),
            (f"all of its {delays.spans} spans are stored", delays.whole_ms),
        )
    ]
    head = ["after a job's result", "ms p50", "p90", "p99", f"within {WAIT_MAX_MS} ms"]
    return f"{page.machine(load)} {len(delays.whole_ms)} jobs, one a second.\n\n{page.table(head, rows)}"


def _share_within(found: list[float]) -> float:
    return sum(one <= WAIT_MAX_MS for one in found) / len(found)


def main() -> None:
    parser = argparse.ArgumentParser(description="How soon after a job's end its trace is stored whole.")
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    given = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="wayline-bench-") as directory:
        # Postgres runs as another user where we are root.
        os.chmod(directory, 0o711)
        text = report(uvloop.run(measure(Path(directory), given.jobs)), load)
    if given.write:
        page.write(given.write, "trace_delay", text)
    print(text)


if __name__ == "__main__":
    main()
