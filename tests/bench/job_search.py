"""What it costs Postgres to find jobs: lists and facets among 100,000 jobs, with and without words.

python -m tests.bench.job_search [--jobs N] [--write docs/performance.md]

CPU is the connection's own, so that others on the machine change it little; the time is what a caller waits.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any

import asyncpg

from wayline.chassis.loop_pauses import shorten_pauses
from wayline.contracts.traces import ListJobs
from wayline.embedded import PostgresServer
from wayline.store import Store, migrate
from wayline.tracing import app
from wayline.tracing.adapters.tables import PostgresTables
from wayline.tracing.handlers.answers import ViewHandlers
from wayline.tracing.job_words import job_words
from wayline.tracing.rows import JobRow, Rows

from . import page
from .speed.load import percentile

JOBS, ROUNDS, AT_ONCE = 100_000, 60, 2_000
WAIT_MAX_MS = 50
VOCABULARY, WORDS_OF_A_JOB = 20_000, 60
TICKS = os.sysconf("SC_CLK_TCK")
QUESTIONS: dict[str, dict[str, Any]] = {
    "newest": {},
    "of an agent that failed": {"agent": "agent-3", "statuses": ("failed",)},
    "of a user": {"user_id": "user-17"},
    "dearest": {"sort": "dearest"},
    "with a word that every job has": {"q": "common"},
    "with a word of one job in ten": {"q": "tenth"},
    "with a rare word": {"q": "word19999"},
    "with two words and a tag": {"q": "common tenth", "tags": ("team:a",)},
    "that called a tool": {"tool": "search"},
    "of a rare label": {"agent_label": "candidate"},
}


@dataclass(frozen=True)
class Cost:
    """What one question costs."""

    cpu_ms: float
    waits_ms: list[float]

    def cells(self, name: str) -> list[str]:
        p99 = percentile(self.waits_ms, 0.99)
        held = "yes" if p99 <= WAIT_MAX_MS else "**no**"
        return [name, f"{self.cpu_ms:.1f}", f"{median(self.waits_ms):.1f}", f"{p99:.1f}", f"{WAIT_MAX_MS}", held]


def job(rng: random.Random, number: int) -> JobRow:
    """Return a job of whose words some are common and most are rare."""
    words = [f"word{int(VOCABULARY * rng.random() ** 3)}" for _ in range(WORDS_OF_A_JOB)]
    said = " ".join(["common", *(["tenth"] if number % 10 == 0 else []), *words[:30]])
    answer, status = " ".join(words[30:]), "failed" if number % 20 == 0 else "completed"
    tags, tools = [f"team:{'abc'[number % 3]}"], ["search"] if number % 4 else []
    created = datetime(2026, 5, 1, tzinfo=UTC) + timedelta(seconds=number)
    job_id, label = f"job_{number:08x}", "candidate" if number % 5_000 == 0 else "production" if number % 2 else None
    return JobRow(
        tenant="acme",
        job_id=job_id,
        seq=3,
        trace_id=f"{number:032x}",
        status=status,
        agent=f"agent-{number % 12}",
        agent_version=1,
        session_id=None,
        user_id=f"user-{number % 500}",
        provider="openai",
        model=rng.choice(["small", "large"]),
        tier="flash",
        route_reason="the cheapest that can do it",
        estimated_cost_usd=Decimal("0.01"),
        steps=2,
        usage="{}",
        tokens=900,
        cost_usd=Decimal(rng.randrange(4_000)) / 10_000,
        costs="{}",
        answer=answer,
        partial=False,
        reason=None,
        citations="[]",
        error_code="crash_loop" if status == "failed" else None,
        error_message="it went on and on" if status == "failed" else None,
        waiting_for=None,
        created_at=created,
        ended_at=created + timedelta(seconds=rng.randrange(1, 90)),
        input=said,
        fingerprint=None,
        schedule=None,
        lane="interactive",
        beyond="{}" if label is None else f'{{"agent_label": "{label}"}}',
        tags=tags,
        words=job_words("acme", job_id, [said, answer], tags=tags, tools=tools, label=label),
    )


@asynccontextmanager
async def filled(jobs: int) -> AsyncIterator[Store]:
    """Start a server with so many jobs, and yield tracing's store."""
    with tempfile.TemporaryDirectory(prefix="wayline-bench-") as directory:
        os.chmod(directory, 0o711)
        server = PostgresServer(Path(directory) / "postgres", settings={"fsync": "off"})
        await server.start()
        try:
            await migrate(server.dsn(), schema="tracing", role="bench", password="bench", directory=app.migrations())
            store = await app.open_store(server.dsn(user="bench", password="bench"), pool_size=1, wait_s=5)
            try:
                await _fill(store, server.dsn(), jobs)
                yield store
            finally:
                await store.close()
        finally:
            await server.stop()


async def _fill(store: Store, dsn: str, jobs: int) -> None:
    tables, rng = PostgresTables(store, spans_days=7), random.Random(7)
    owner = await asyncpg.connect(dsn)
    # Made at once when all are there: that takes a tenth of the time.
    words = await owner.fetchval("SELECT indexdef FROM pg_indexes WHERE indexname = 'jobs_by_words'")
    await owner.execute("DROP INDEX tracing.jobs_by_words")
    for first in range(0, jobs, AT_ONCE):
        await tables.write(Rows(jobs=[job(rng, first + number) for number in range(AT_ONCE)]))
    await owner.execute(words)
    await owner.execute("VACUUM ANALYZE tracing.jobs")
    await owner.close()


async def asked(store: Store, question: dict[str, Any], *, facets: bool) -> Cost:
    """Ask one question again and again."""
    views, waits = ViewHandlers(store), []
    request = ListJobs(tenant="acme", limit=50, facets=facets, **question)
    await views.list_jobs(request)
    async with store.system() as conn:
        backend = await conn.fetchval("SELECT pg_backend_pid()")
    before = cpu_s(backend)
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await views.list_jobs(request)
        waits.append((time.perf_counter() - began) * 1_000)
    return Cost((cpu_s(backend) - before) / ROUNDS * 1_000, waits)


def cpu_s(process: int) -> float:
    """Return the CPU that a process has had."""
    user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / TICKS


async def report(jobs: int) -> str:
    """Ask every question among so many jobs, as a list and with facets, and return the table."""
    load = os.getloadavg()[0]
    # As a service has it: Python's own collector stops the loop for 100 ms now and then.
    shorten_pauses()
    async with filled(jobs) as store:
        rows = [
            (await asked(store, question, facets=facets)).cells(f"{name}{', with facets' if facets else ''}")
            for name, question in QUESTIONS.items()
            for facets in (False, True)
        ]
    headings = ["jobs", "CPU of Postgres, ms", "median, ms", "p99, ms", "at most", "held"]
    return f"{page.machine(load)} {jobs:,} jobs, pages of 50, {ROUNDS} times each.\n\n{page.table(headings, rows)}"


def main() -> None:
    parser = argparse.ArgumentParser(description="What it costs to find jobs.")
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    given = parser.parse_args()
    text = asyncio.run(report(given.jobs))
    if given.write:
        page.write(given.write, "job_search", text)
    print(text)


if __name__ == "__main__":
    main()
