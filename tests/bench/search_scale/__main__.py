"""Measure search at a size and write the tables.

    python -m tests.bench.search_scale [--data DIR] [--passages 100000] [--words 1000000] [--write docs/search.md]

A server of its own; half of the vectors' table is the largest tenant's. The passages are mixed of the public sets' in
DIR (see passages.py), the questions are theirs. With `--words 0` or `--passages 0` that part is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tests.bench import page
from tests.bench.remembered_vectors import VECTORS_FILE, RememberedVectors
from tests.bench.retrieval_database import Database, database
from tests.bench.search_scale import words
from tests.bench.search_scale.ingestion import embed_alone, ingest_documents
from tests.bench.search_scale.passages import Mixer, Real, load_real
from tests.bench.search_scale.recall import Recall, measure_recall
from tests.bench.search_scale.speed import RecordingTable, measure_times
from tests.bench.search_scale.stored import (
    MODEL,
    PASSAGES_OF_DOCUMENT,
    ROOMS,
    SHELVES,
    Stored,
    store_passages,
    store_vectors,
)
from wayline.contracts.knowledge import Condition, Filter
from wayline.retrieval.embeddings.embed_texts import TextEmbedder
from wayline.retrieval.embeddings.minilm.on_board import OnBoard
from wayline.retrieval.search.search_passages import Searcher
from wayline.retrieval.search.segments import SegmentBuilder
from wayline.retrieval.search.wiring import query_embedder
from wayline.retrieval.search.word_counts import WordCounts
from wayline.retrieval.settings import Settings
from wayline.store import Store
from wayline.telemetry import Telemetry

if TYPE_CHECKING:
    from wayline.retrieval.embeddings.embedding import Vectors
    from wayline.retrieval.embeddings.embedding_payments import Payer

REAL_OF_SET_MAX = 1_500
SHARES = {"large": 0.5, "middle": 0.06, "five-percent": 0.05, "one-percent": 0.01, "tenth-percent": 0.001}
"""Of all passages, by tenant; the rest is others'."""
OTHERS = 8
QUESTIONS = 100
ROUNDS = 1
EMBEDDED = 96
"""Passages of one round of ingestion with the model on board."""
INGESTED = 10_000
"""Passages of ingestion by words alone, about."""


class KnownQuestions(RememberedVectors):
    """Gives the questions' vectors under the name of the mixed ones."""

    def __init__(self, questions: dict[str, Vectors], like: RememberedVectors) -> None:
        self._questions = questions
        self.model, self.provider, self.kept, self.background = MODEL, "bench", "", False
        self.vector_weight, self.vector_weight_unknown = like.vector_weight, like.vector_weight_unknown
        self.asked_dimensions: int | None = None
        self.similarity_min = like.similarity_min

    async def embed(self, texts: Sequence[str], *, payer: Payer | None = None) -> Vectors:
        return np.stack([self._questions[text] for text in texts])


def make_searcher(
    store: Store, embedder: KnownQuestions, *, candidates: int | None = None
) -> tuple[Searcher, RecordingTable]:
    settings, table = Settings(), RecordingTable(store)
    texts = query_embedder(settings, TextEmbedder(embedder, Telemetry("bench")))
    few = settings.keyword_candidates if candidates is None else candidates
    return Searcher(table, texts, Telemetry("bench"), few, settings.leg_candidates), table


async def main(data: Path, passages: int, short: int, vectors: Path) -> str:
    remembered = RememberedVectors(OnBoard(threads=1), vectors)
    real = await load_real(data, remembered, each_set_max=REAL_OF_SET_MAX)
    print(f"{len(real.texts)} real passages, {len(real.questions)} questions", flush=True)
    chosen = list(real.questions)[:: max(1, len(real.questions) // QUESTIONS)]
    questions = {text: real.questions[text] for text in chosen}
    embedder = KnownQuestions(real.questions, remembered)
    told = ""
    if passages:
        async with database() as base:
            told += await measure_passages(base, real, questions, embedder, passages)
    if short:
        async with database() as base:
            told += await measure_words(base, real, list(questions), embedder, short)
    return told


async def measure_passages(
    base: Database, real: Real, questions: dict[str, Vectors], embedder: KnownQuestions, passages: int
) -> str:
    rates = await ingestion(base, real)
    every = await load(base, real, passages)
    searcher, table = make_searcher(base.store, embedder)
    recalls = await recall(base, searcher, every, questions)
    for one in recalls:
        print(one, flush=True)
    times = {}
    for name, how in (
        ("hybrid", {"mode": "hybrid"}),
        ("hybrid, 5 % filter", {"mode": "hybrid", "filter": SHELF}),
        ("words", {"mode": "keyword"}),
        ("vectors", {"mode": "vector"}),
    ):
        times[name] = await measure_times(base, searcher, table, list(questions), rounds=ROUNDS, tenant="large", **how)
        print(times[name].rows(name), flush=True)
    largest = len(every["large"].chunk_ids)
    return (
        f"The largest tenant has {largest:,} passages of {sum(len(one.chunk_ids) for one in every.values()):,} in the "
        f"table, {len(questions)} questions.\n\n"
        + page.table(
            ["by vector", "passages that may be found", "recall@10", "least", "p50 ms", "p99 ms"],
            [
                [
                    one.name,
                    f"{one.allowed:,}",
                    f"{one.mean:.3f}",
                    f"{one.least:.1f}",
                    f"{one.p50_ms:.1f}",
                    f"{one.p99_ms:.1f}",
                ]
                for one in recalls
            ],
        )
        + "\n"
        + page.table(
            ["of the largest tenant", "", "p50 ms", "p99 ms", "a search beside it", "CPU ms", "by CPU"],
            [row for name, one in times.items() for row in one.rows(name)],
        )
        + "\n"
        + rates
        + "\n"
    )


SHELF = Filter(where={"shelf": Condition(equals=3)})


async def load(base: Database, real: Real, passages: int) -> dict[str, Stored]:
    """Store everybody's passages; the largest tenant has so many."""
    mixer, total = Mixer(real, seed=1), round(passages / SHARES["large"])
    counts = {name: round(total * share) for name, share in SHARES.items()}
    left = total - sum(counts.values())
    counts |= {f"other-{n}": left // OTHERS for n in range(OTHERS)}
    every = {}
    started = time.perf_counter()
    for tenant, count in counts.items():
        every[tenant] = await store_passages(base.store, tenant, [mixer.passage() for _ in range(count)])
        await WordCounts(base.store).add_all()
    print(f"stored {total} passages in {time.perf_counter() - started:.0f} s", flush=True)
    started = time.perf_counter()
    await SegmentBuilder(base.store).build_all()
    await store_vectors(base, list(every.values()))
    print(f"postings, vectors and their index in {time.perf_counter() - started:.0f} s", flush=True)
    return every


async def recall(
    base: Database, searcher: Searcher, every: dict[str, Stored], questions: dict[str, Vectors]
) -> list[Recall]:
    large = every["large"]
    shelf, room = ([n % SHELVES for n in large.documents], [n // SHELVES % ROOMS for n in large.documents])
    found = [
        await measure_recall(searcher, large, questions, name="50 % of the table"),
        await measure_recall(
            searcher, large, questions, name="of them a filter of 5 %", filter=SHELF, kept=[n == 3 for n in shelf]
        ),
        await measure_recall(
            searcher,
            large,
            questions,
            name="5 % by the passages' own metadata",
            filter=Filter(metadata={"shelf": 3}),
            kept=[n == 3 for n in shelf],
        ),
        await measure_recall(
            searcher,
            large,
            questions,
            name="a filter of 20 %",
            filter=Filter(where={"room": Condition(equals=2)}),
            kept=[n == 2 for n in room],
        ),
    ]
    for tenant in list(SHARES)[1:]:
        share = f"{SHARES[tenant]:.1%}".replace(".0", "")
        found.append(
            await measure_recall(searcher, every[tenant], questions, name=f"a tenant with {share} of the table")
        )
    async with base.owner() as conn:
        await conn.execute(
            "UPDATE documents SET audience = CASE metadata ->> 'shelf' WHEN '3' THEN '{keepers}'::text[] "
            "ELSE '{others}' END WHERE tenant = 'large'"
        )
    found.append(
        await measure_recall(
            searcher, large, questions, name="an audience of 5 %", audience=("keepers",), kept=[n == 3 for n in shelf]
        )
    )
    async with base.owner() as conn:
        await conn.execute("UPDATE documents SET audience = NULL WHERE tenant = 'large'")
        await conn.execute("VACUUM ANALYZE documents")
    return found


async def ingestion(base: Database, real: Real) -> str:
    """Measure in turn: the model alone, and documents that come in with its vectors; then words alone."""
    mixer, board, pid = Mixer(real, seed=2), OnBoard(threads=1), base.server.pid
    await board.embed(["Load the model."])
    rows = []
    for n in range(3):
        texts = [mixer.passage()[0] for _ in range(EMBEDDED)]
        documents = ["\n\n".join(texts[at : at + 24]) for at in range(0, len(texts), 24)]
        coming = await ingest_documents(base.store, f"in-{n}", documents, board, vectors=True, postgres=pid)
        stored = await base.store.fetch(f"in-{n}", "SELECT name || E'\\n' || text AS text FROM chunks")
        alone = await embed_alone(board, [row["text"] for row in stored])
        rows.append((coming, alone))
    texts = [mixer.passage()[0] for _ in range(INGESTED)]
    documents = ["\n\n".join(texts[at : at + PASSAGES_OF_DOCUMENT]) for at in range(0, INGESTED, PASSAGES_OF_DOCUMENT)]
    alone = await ingest_documents(base.store, "words", documents, board, vectors=False, postgres=pid)
    await board.close()
    table = [
        [
            f"with the model on board, {in_.passages} passages",
            *(f"{value:.1f}" for value in (in_.passages / in_.seconds, of.passages / of.seconds)),
            f"{of.seconds / in_.seconds:.2f}",
            f"{1000 * in_.cpu_s / in_.passages:.1f}",
            f"{1000 * of.cpu_s / of.passages:.1f}",
        ]
        for in_, of in rows
    ]
    table.append(
        [
            f"by words alone, {alone.passages:,} passages",
            f"{alone.passages / alone.seconds:,.0f}",
            "",
            "",
            f"{1000 * alone.cpu_s / alone.passages:.2f}",
            "",
        ]
    )
    print(*table, sep="\n", flush=True)
    each = {"the service": alone.own_cpu_s, "Postgres": alone.cpu_s - alone.own_cpu_s}
    parts = " and ".join(f"{1000 * used / alone.passages:.2f} s in {name}" for name, used in each.items())
    return (
        page.table(
            ["ingestion", "passages/s", "the model alone", "share of it", "CPU ms a passage", "of the model alone"],
            table,
        )
        + f"\n1,000 passages by words alone take {parts} of CPU: on two idle CPUs at most {alone.on_idle_cpus(2):,.0f} "
        + "a second come in, with the service and Postgres at work side by side.\n"
    )


async def measure_words(base: Database, real: Real, questions: list[str], embedder: KnownQuestions, short: int) -> str:
    stored = await words.store_short(base, Mixer(real, seed=3), short)
    print(f"{short} short passages in {stored[0]:.0f} s, their postings in {stored[1]:.0f} s", flush=True)
    searcher, _ = make_searcher(base.store, embedder)
    every, _ = make_searcher(base.store, embedder, candidates=10**9)
    got = await words.search_words(searcher, every, questions, stored=stored, passages=short)
    print(got, flush=True)
    return page.table(
        ["words, short passages", "p50 ms", "p99 ms", "ranked one by one", "of the ten best", "postings in s"],
        [
            [
                f"{got.passages:,}",
                f"{got.p50_ms:.0f}",
                f"{got.p99_ms:.0f}",
                f"{got.ratio:.4f}",
                f"{got.overlap:.3f}",
                f"{got.segmented_s:.0f}",
            ]
        ],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("WAYLINE_SHARED", "../shared")) / "data")
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=1_000_000)
    parser.add_argument("--vectors", type=Path, default=VECTORS_FILE)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    load_before = os.getloadavg()[0]
    text = asyncio.run(main(given.data, given.passages, given.words, given.vectors))
    if given.write:
        page.write(given.write, "scale", f"{page.machine(load_before)}\n\n{text}", by="make search-scale")
