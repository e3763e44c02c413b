"""What a search takes beside the statements that it runs, and beside the one of them that ranks."""

from __future__ import annotations

import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.bench.retrieval_database import Database
from tests.bench.search_scale.ingestion import cpu_seconds
from wayline.contracts.knowledge import SearchKnowledge
from wayline.retrieval.search.passage_table import PassageSearch, PassageTable
from wayline.retrieval.search.search_passages import Searcher
from wayline.store import Store

Statement = tuple[str, tuple[Any, ...]]


class RecordingTable(PassageTable):
    """The table of passages, which remembers the statements of the last search."""

    statements: list[Statement]

    @asynccontextmanager
    async def searching(self, tenant: str) -> AsyncIterator[PassageSearch]:
        self.statements = []
        async with super().searching(tenant) as search:
            search._conn = _Recording(search._conn, self.statements)  # pyright: ignore
            yield search


class _Recording:
    def __init__(self, conn: Any, statements: list[Statement]) -> None:
        self._conn, self._statements = conn, statements

    async def fetch(self, sql: str, *args: Any) -> Any:
        self._statements.append((sql, args))
        return await self._conn.fetch(sql, *args)

    async def fetchval(self, sql: str, *args: Any) -> Any:
        self._statements.append((sql, args))
        return await self._conn.fetchval(sql, *args)

    async def fetchrow(self, sql: str, *args: Any) -> Any:
        self._statements.append((sql, args))
        return await self._conn.fetchrow(sql, *args)


@dataclass(frozen=True)
class Times:
    """Milliseconds of each query, in turn: the whole search, its statements alone, the ranking one alone."""

    search: Sequence[float]
    statements: Sequence[float]
    ranking: Sequence[float]
    search_cpu_ms: float
    """Of a search on average, in this process and in Postgres."""
    statements_cpu_ms: float

    def rows(self, name: str) -> list[list[str]]:
        """Return a row for each, with how often the search takes what it takes."""
        whole, cpu = sum(self.search), self.search_cpu_ms
        parts = (
            ("a search", self.search, cpu),
            ("its statements", self.statements, self.statements_cpu_ms),
            ("the ranking one", self.ranking, None),
        )
        return [
            [
                *(name, label),
                *(f"{_percentile(ms, at):.1f}" for at in (0.5, 0.99)),
                f"{whole / sum(ms):.2f}",
                *(("", "") if of is None else (f"{of:.1f}", f"{cpu / of:.2f}")),
            ]
            for label, ms, of in parts
        ]


async def measure_times(
    base: Database, searcher: Searcher, table: RecordingTable, queries: Sequence[str], *, rounds: int, **how: Any
) -> Times:
    """Ask each query once to learn its statements, then time it and these, in turn which of them comes first."""
    search, statements, ranking, cpu = [], [], [], [0.0, 0.0]
    for number, text in enumerate(list(queries) * rounds):
        asked = SearchKnowledge(query=text, top_k=10, **how)
        await searcher.search(asked)
        told = list(table.statements)
        for is_search in (True, False) if number % 2 else (False, True):
            used, started = cpu_seconds(base.server.pid), time.perf_counter()
            if is_search:
                await searcher.search(asked)
                search.append((time.perf_counter() - started) * 1000)
            else:
                of_statements, of_ranking = await _replay(base.store, asked.tenant, told)
                statements.append(of_statements * 1000)
                ranking.append(of_ranking * 1000)
            cpu[0 if is_search else 1] += (cpu_seconds(base.server.pid) - used) * 1000
    return Times(search, statements, ranking, *(ms / len(search) for ms in cpu))


async def _replay(store: Store, tenant: str, told: Sequence[Statement]) -> tuple[float, float]:
    """Run the statements of one search, and return the seconds of all and of the ranking ones."""
    ranks = 0.0
    started = time.perf_counter()
    async with store.tenant(tenant) as conn:
        await conn.execute(store.sql.use_search_settings)
        for sql, args in told:
            of_one = time.perf_counter()
            await conn.fetch(sql, *args)
            if "ranked_words AS" in sql:
                ranks += time.perf_counter() - of_one
    return time.perf_counter() - started, ranks


def _percentile(values: Sequence[float], at: float) -> float:
    return statistics.median(values) if at == 0.5 else sorted(values)[int(len(values) * at)]
