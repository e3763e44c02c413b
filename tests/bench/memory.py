"""How well memory finds the turns of conversations that answer a question, beside bm25s; and how long it takes.

    python -m tests.bench.memory [--facts 10000,100000] [--parts recall,support,speed] [--write docs/memory.md]

Each turn of the public set `memory-locomo-dev` (see tests/evals/shared.py) is stored as a fact, past the caps and
refusals of saving, and asked for as a service asks: by retrieval's own code and statement, in a Postgres of its own.
What the words of a conversation stand behind is measured beside inventions (see memory_support.py).
Then as many facts as `--facts` says are stored of users and subjects that have as many as they may, and saved and
recalled one call at a time. `--write` puts the tables into a page, each between its two marks.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import itertools
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg

from tests.bench import memory_support, page
from tests.bench.retrieval_quality import CUT, ndcg, recall
from tests.bench.search_scale.ingestion import postgres_seconds
from tests.evals.shared import path
from wayline.chassis.loop_pauses import shorten_pauses
from wayline.contracts.memory import (
    CAPS,
    Fact,
    NewFact,
    Quoted,
    RecallInsights,
    RecallMemories,
    SubjectRef,
    Tier,
    WrittenBy,
)
from wayline.embedded import PostgresServer
from wayline.retrieval import app
from wayline.retrieval.embeddings.embed_texts import TextEmbedder
from wayline.retrieval.memory.fact_quota import FactQuota
from wayline.retrieval.memory.fact_rows import arguments_of
from wayline.retrieval.memory.fact_rules import INSIGHTS_PER_SUBJECT_MAX
from wayline.retrieval.memory.fact_table import FactTable, load_queries
from wayline.retrieval.memory.fact_text import FactText
from wayline.retrieval.memory.fact_vectors import FactVectors
from wayline.retrieval.memory.plan_save import Owner, Row
from wayline.retrieval.memory.recall import Recaller
from wayline.retrieval.memory.remember import Rememberer
from wayline.retrieval.postgres import open_store
from wayline.retrieval.settings import LEXICAL_MODEL, ON_BOARD_MODEL, Settings
from wayline.store import Store, migrate
from wayline.telemetry import Telemetry

SET = "memory-locomo-dev"
MADE_BY = "make memory-quality"
SUBJECTS = 20
"""That have 200 insights each; the other facts are memories of users who have 26."""
CALLS = 500
"""Of each kind, one at a time."""
FILLED_AT_ONCE = 100
"""Owners whose facts are stored in one transaction."""
SENTENCES = 300
"""That the stored facts are: what a call costs does not depend on what is stored of others."""
SPEED_HEAD = ["facts", "", "save a memory", "recall of 26 memories", "save an insight", "recall of 200 insights"]
DOES = ("play", "collect", "repair", "sell", "paint", "study", "draw", "lend")
WHAT = ("cellos", "stamps", "bicycles", "maps", "clocks", "kites", "lamps", "boats", "roses", "drums")
WHERE = ("in Bonn", "in Lisbon", "at home", "with my sister", "at work", "in Osaka", "near the harbour")
MODELS = {LEXICAL_MODEL: "memory, by words and spelling", ON_BOARD_MODEL: "memory, with the model on board"}


@dataclass(frozen=True)
class Quality:
    """What is found of the turns that answer the questions of a set."""

    ndcg: float
    recall: float


BM25S = Quality(0.4411, 0.5846)
"""Of bm25s 0.3.16 (k1 1.5, b .75) on the turns of one conversation: the best with and without stems and stop words."""
BM25S_SAME_WORDS = Quality(0.4766, 0.6229)
"""Of the same on the words that memory makes of a text: what the words alone are worth."""


@dataclass(frozen=True)
class Memory:
    """What is remembered by a tenant, with one embedder."""

    store: Store
    tenant: str
    facts: FactTable
    vectors: FactVectors

    @classmethod
    def of(cls, store: Store, model: str, tenant: str) -> Memory:
        embedder = app.make_embedder(Settings(embedding_model=model))
        return cls(store, tenant, FactTable(store), FactVectors(TextEmbedder(embedder, Telemetry("bench"))))

    @property
    def recaller(self) -> Recaller:
        return Recaller(self.facts, self.vectors)

    async def rows(self, texts: dict[str, str]) -> list[Row]:
        """Return texts by their ids as facts of nobody yet."""
        vectors, degraded = await self.vectors.of(self.tenant, list(texts.values()))
        assert vectors is not None, degraded
        now = datetime.now(UTC)
        common: dict[str, Any] = {"category": "preference", "trust": "own", "recorded_at": now, "last_said_at": now}
        return [
            Row(Fact(fact_id=key, text=text, **common), FactText(text), vector)
            for (key, text), vector in zip(texts.items(), vectors, strict=True)
        ]

    async def fill(self, owned: Sequence[tuple[Owner, Sequence[Row], Iterable[Tier | None]]]) -> None:
        """Store facts of owners, also what saving would refuse or retire; each has its rows and their tiers."""
        now, insert = datetime.now(UTC), load_queries().insert_fact
        for first in range(0, len(owned), FILLED_AT_ONCE):
            async with self.store.tenant(self.tenant) as conn:
                for owner, rows, tiers in owned[first : first + FILLED_AT_ONCE]:
                    of_owner = [_row_of(owner, row, tier) for row, tier in zip(rows, tiers, strict=False)]
                    named = {"key": None, "model": self.vectors.model, "retired": None, "now": now}
                    await conn.executemany(insert, [arguments_of(self.tenant, owner, row, **named) for row in of_owner])

    async def recall(self, user_id: str, query: str) -> list[str]:
        """Return what is recalled, best first, by the ids that its rows had."""
        asked = RecallMemories(tenant=self.tenant, user_id=user_id, search_terms=(query,), limit=CUT)
        found = await self.recaller.memories(asked)
        assert found.degraded is None, found.degraded
        return [fact.fact_id.removeprefix(f"{Owner('memory', user_id=user_id).name} ") for fact in found.facts]


def _row_of(owner: Owner, row: Row, tier: Tier | None) -> Row:
    named = {"kind": owner.kind, "user_id": owner.user_id, "subject": owner.subject, "tier": tier}
    return replace(row, fact=row.fact.model_copy(update=named | {"fact_id": f"{owner.name} {row.fact.fact_id}"}))


async def measure_recall(memory: Memory, folder: Path) -> Quality:
    """Store each conversation's turns as one user's memories, and ask each question of its own conversation."""
    turns: dict[str, dict[str, str]] = {}
    for turn in _lines(folder / "corpus.jsonl.gz"):
        turns.setdefault(turn["owner"], {})[turn["_id"]] = turn["text"]
    for owner, texts in turns.items():
        rows = await memory.rows(texts)
        await memory.fill([(Owner("memory", user_id=owner), rows, itertools.repeat("core"))])
    grades: dict[str, dict[str, int]] = {}
    with gzip.open(folder / "qrels.tsv.gz", "rt", encoding="utf-8") as rows:
        for query_id, turn, grade in (row.split("\t") for row in list(rows)[1:]):
            grades.setdefault(query_id, {})[turn] = int(grade)
    asked = [query for query in _lines(folder / "queries.jsonl.gz") if query["_id"] in grades]
    found = [(await memory.recall(query["owner"], query["text"]), grades[query["_id"]]) for query in asked]
    return Quality(
        ndcg=statistics.mean(ndcg(*one) for one in found), recall=statistics.mean(recall(*one, CUT) for one in found)
    )


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


@asynccontextmanager
async def open_tables() -> AsyncIterator[tuple[Store, PostgresServer]]:
    """Yield retrieval's tables, and the Postgres of their own that they are in."""
    with tempfile.TemporaryDirectory(prefix="wayline-bench-") as directory:
        os.chmod(directory, 0o711)
        server = PostgresServer(Path(directory) / "postgres")
        await server.start()
        try:
            await migrate(
                server.dsn(),
                schema="retrieval",
                role="bench",
                password="bench",
                directory=app.migrations(),
                vector=True,
            )
            store = await open_store(server.dsn(user="bench", password="bench"), pool_size=4, wait_s=5)
            try:
                yield store, server
            finally:
                await store.close()
        finally:
            await server.stop()


async def report_recall(store: Store) -> str:
    """Measure with each embedder, and return the table."""
    measured = {"bm25s": BM25S, "bm25s on the words of memory": BM25S_SAME_WORDS}
    for model, name in MODELS.items():
        measured[name] = await measure_recall(Memory.of(store, model, model.lower()), path(SET))
    lines = [[name, f"{one.ndcg:.3f}", f"{one.recall:.3f}"] for name, one in measured.items()]
    return page.table(["", "nDCG@10", "recall@10"], lines)


@dataclass(frozen=True)
class Crowd:
    """Users and subjects that have as many facts as they may, and calls for one of them at a time."""

    memory: Memory
    rememberer: Rememberer
    users: int
    chance: random.Random

    @classmethod
    async def of(cls, memory: Memory, facts: int) -> Crowd:
        """Store so many facts: insights of a few subjects, and for the rest memories."""
        tiers: list[Tier | None] = [tier for tier, most in CAPS.items() for _ in range(most)]
        insights: list[Tier | None] = [None] * INSIGHTS_PER_SUBJECT_MAX
        users = (facts - SUBJECTS * INSIGHTS_PER_SUBJECT_MAX) // len(tiers)
        rememberer = Rememberer(memory.facts, memory.vectors, FactQuota(memory.facts, 2 * facts))
        crowd = cls(memory, rememberer, users, random.Random(facts))
        known = await memory.rows({str(number): sentence(number) for number in range(SENTENCES)})
        owners = [(subject(number), insights) for number in range(SUBJECTS)]
        owners += [(Owner("memory", user_id=f"u{number}"), tiers) for number in range(users)]
        await memory.fill([(owner, crowd.chance.sample(known, len(kinds)), kinds) for owner, kinds in owners])
        return crowd

    async def save_memory(self, number: int) -> None:
        await self._save(Owner("memory", user_id=self._user()), number)

    async def recall_memories(self, number: int) -> None:
        asked = RecallMemories(
            tenant=self.memory.tenant, user_id=self._user(), search_terms=(self._asked(),), key=f"r {number}"
        )
        await self.memory.recaller.memories(asked)

    async def save_insight(self, number: int) -> None:
        await self._save(subject(self.chance.randrange(SUBJECTS)), number)

    async def recall_insights(self, number: int) -> None:
        about = subject(self.chance.randrange(SUBJECTS)).subject
        assert about is not None
        asked = RecallInsights(tenant=self.memory.tenant, about=about, query=self._asked(), key=f"i {number}")
        await self.memory.recaller.insights(asked)

    async def _save(self, owner: Owner, number: int) -> None:
        text, key = sentence(SENTENCES + number), f"{owner.name} {number}"
        fact = NewFact(text=text, category="preference", quote=text, quoted=Quoted(job_id="j", seq=number))
        await self.rememberer.save(self.memory.tenant, owner, [fact], WrittenBy(), key=key, content_hash=key)

    def _user(self) -> str:
        return f"u{self.chance.randrange(self.users)}"

    def _asked(self) -> str:
        return f"What does she say about {sentence(self.chance.randrange(SENTENCES))}?"


def subject(number: int) -> Owner:
    return Owner("insight", subject=SubjectRef(type="client", id=f"c{number}"))


def sentence(number: int) -> str:
    """Return one of many sentences."""
    chance = random.Random(number)
    does, what, where = (chance.choice(words) for words in (DOES, WHAT, WHERE))
    return f"I {does} {chance.randrange(2, 99)} {what} {where} near street {number}"


async def analyze(owner: str) -> None:
    """Count rows as autovacuum does within a minute: without that each call reads all facts of its tenant."""
    connection = await asyncpg.connect(owner)
    try:
        await connection.execute("ANALYZE")
    finally:
        await connection.close()


async def report_speed(store: Store, server: PostgresServer, facts: int) -> list[list[str]]:
    """Return for each embedder the milliseconds that each kind of call takes, and those of CPU."""
    lines: list[list[str]] = []
    for model, name in MODELS.items():
        began = time.perf_counter()
        crowd = await Crowd.of(Memory.of(store, model, f"facts-{facts}-{model.lower()}"), facts)
        await analyze(server.dsn())
        # As a service has it: Python's own collector stops the loop for 100 ms now and then.
        shorten_pauses()
        print(f"{facts:,} facts were stored in {time.perf_counter() - began:.0f} s", flush=True)
        cells = [f"{facts:,}", name]
        for call in (crowd.save_memory, crowd.recall_memories, crowd.save_insight, crowd.recall_insights):
            seconds: list[float] = []
            used: list[float] = []
            for number in range(CALLS):
                of_postgres, own, began = postgres_seconds(server.pid), time.process_time(), time.perf_counter()
                await call(number)
                seconds.append(time.perf_counter() - began)
                own = time.process_time() - own
                used.append(own + postgres_seconds(server.pid) - of_postgres)
            cells.append(
                " / ".join(f"{median_ms:.1f}, {most_ms:.1f}" for median_ms, most_ms in map(_ms, (seconds, used)))
            )
        lines.append(cells)
        print(" | ".join(cells), flush=True)
    return lines


def _ms(seconds: Sequence[float]) -> tuple[float, float]:
    """Return the median and the 99th percentile in milliseconds."""
    return statistics.median(seconds) * 1000, statistics.quantiles(seconds, n=100)[98] * 1000


async def main(parts: Collection[str], facts: Sequence[int], write: Path | None) -> None:
    """Measure, print, and write what is asked for."""
    load = os.getloadavg()[0]
    made: dict[str, str] = {}
    async with open_tables() as (store, server):
        if "recall" in parts and path(SET).exists():
            made["recall"] = await report_recall(store)
        elif "recall" in parts:
            print(f"recall is not measured: {path(SET)} is not here; set WAYLINE_SHARED")
        if "support" in parts:
            made["support"] = memory_support.report({name: path(name) for name in memory_support.SETS})
        if "speed" in parts:
            lines = [line for count in facts for line in await report_speed(store, server, count)]
            made["speed"] = f"{page.table(SPEED_HEAD, lines)}\n{page.machine(load)}\n"
    for part, text in made.items():
        print(text)
        if write is not None:
            page.write(write, part, text, by=MADE_BY)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--facts", default="10000", help="how many facts are stored, one number or several")
    arguments.add_argument("--parts", default="recall,support,speed", help="which tables are made")
    arguments.add_argument("--write", type=Path, help="the page whose tables are replaced")
    given = arguments.parse_args()
    asyncio.run(main(given.parts.split(","), [int(count) for count in given.facts.split(",")], given.write))
