"""How well memory finds the turns of conversations that answer a question, beside bm25s.

    python -m tests.bench.memory [--write docs/memory.md]

Each turn of the public set `memory-locomo-dev` (see tests/evals/shared.py) is stored as a fact, past the caps and
refusals of saving, and asked for as a service asks: by retrieval's own code and statement, in a Postgres of its own.
`--write` puts the table into a page, between its two marks.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import statistics
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench import page
from tests.bench.retrieval_quality import CUT, ndcg, recall
from tests.evals.shared import path
from wayline.contracts.memory import Fact, RecallMemories
from wayline.embedded import PostgresServer
from wayline.retrieval import app
from wayline.retrieval.adapters.postgres import open_store
from wayline.retrieval.embed_texts import TextEmbedder
from wayline.retrieval.memory.fact_table import FactTable
from wayline.retrieval.memory.fact_text import FactText
from wayline.retrieval.memory.fact_vectors import FactVectors
from wayline.retrieval.memory.plan_save import Owner, Plan, Row
from wayline.retrieval.memory.recall import Recaller
from wayline.retrieval.settings import LEXICAL_MODEL, ON_BOARD_MODEL, Settings
from wayline.store import Store, migrate
from wayline.telemetry import Telemetry

SET = "memory-locomo-dev"
MADE_BY, PART = "make memory-quality", "recall"
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
    """What is remembered of a tenant's users, with one embedder; the tenant is named as its model."""

    facts: FactTable
    vectors: FactVectors

    @classmethod
    def of(cls, store: Store, model: str) -> Memory:
        embedder = app.make_embedder(Settings(embedding_model=model))
        return cls(FactTable(store), FactVectors(TextEmbedder(embedder, Telemetry("bench"))))

    @property
    def tenant(self) -> str:
        return self.vectors.model.lower()

    async def fill(self, user_id: str, texts: dict[str, str]) -> None:
        """Store texts by their ids as memories of a user, also what saving would refuse or retire."""
        owner, now = Owner("memory", user_id=user_id), datetime.now(UTC)
        vectors, degraded = await self.vectors.of(self.tenant, list(texts.values()))
        assert vectors is not None, degraded
        common: dict[str, Any] = {"user_id": user_id, "category": "profile", "tier": "core", "trust": "own"}
        rows = [
            Row(Fact(fact_id=key, text=text, recorded_at=now, last_said_at=now, **common), FactText(text), vector)
            for (key, text), vector in zip(texts.items(), vectors, strict=True)
        ]
        async with self.facts.owned(self.tenant, owner) as owned:
            await owned.apply(Plan(inserts=rows), key=None, model=self.vectors.model, now=now)

    async def recall(self, user_id: str, query: str) -> list[str]:
        """Return the ids of what is recalled, best first."""
        asked = RecallMemories(tenant=self.tenant, user_id=user_id, search_terms=(query,), limit=CUT)
        found = await Recaller(self.facts, self.vectors).memories(asked)
        assert found.degraded is None, found.degraded
        return [fact.fact_id for fact in found.facts]


async def measure_recall(memory: Memory, folder: Path) -> Quality:
    """Store each conversation's turns as one user's memories, and ask each question of its own conversation."""
    turns: dict[str, dict[str, str]] = {}
    for turn in _lines(folder / "corpus.jsonl.gz"):
        turns.setdefault(turn["owner"], {})[turn["_id"]] = turn["text"]
    for owner, texts in turns.items():
        await memory.fill(owner, texts)
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
async def open_tables() -> AsyncIterator[Store]:
    """Yield retrieval's tables in a Postgres of their own."""
    with tempfile.TemporaryDirectory(prefix="wayline-bench-") as directory:
        os.chmod(directory, 0o711)
        server = PostgresServer(Path(directory) / "postgres")
        await server.start()
        try:
            named = {"schema": "retrieval", "role": "bench", "password": "bench"}
            await migrate(server.dsn(), **named, directory=app.migrations(), vector=True)
            store = await open_store(server.dsn(user="bench", password="bench"), pool_size=4, wait_s=5)
            try:
                yield store
            finally:
                await store.close()
        finally:
            await server.stop()


async def report_recall(store: Store) -> str:
    """Measure with each embedder, and return the table."""
    measured = {"bm25s": BM25S, "bm25s on the words of memory": BM25S_SAME_WORDS}
    for model, name in MODELS.items():
        measured[name] = await measure_recall(Memory.of(store, model), path(SET))
    lines = [[name, f"{one.ndcg:.3f}", f"{one.recall:.3f}"] for name, one in measured.items()]
    return page.table(["", "nDCG@10", "recall@10"], lines)


async def main(write: Path | None) -> None:
    """Measure, print, and write what is asked for."""
    if not path(SET).exists():
        print(f"not measured: {path(SET)} is not here; set WAYLINE_SHARED")
        return
    async with open_tables() as store:
        text = await report_recall(store)
    print(text)
    if write is not None:
        page.write(write, PART, text, by=MADE_BY)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--write", type=Path, help="the page whose table is replaced")
    asyncio.run(main(arguments.parse_args().write))
