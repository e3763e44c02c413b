"""How well retrieval finds what people judged relevant: nDCG@10, recall@100 and latency of each mode, and index sizes.

    python tests/bench/retrieval_quality.py --data DIR [--sets ir-cacm,…] [--chunk-chars 1000]

DIR holds one folder a set, each with corpus.jsonl.gz, queries.jsonl.gz and qrels.tsv.gz as BEIR lays them out. Without
it there is nothing to measure, and the script says so and ends well.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wayline.contracts.knowledge import IndexDocument, SearchKnowledge
from wayline.embedded import PostgresServer
from wayline.retrieval import app
from wayline.retrieval.adapters.documents import DocumentTable
from wayline.retrieval.adapters.kept_embeddings import KeptEmbeddingTable
from wayline.retrieval.adapters.passages import PassageTable
from wayline.retrieval.adapters.postgres import open_store
from wayline.retrieval.adapters.word_counts import WordCounts
from wayline.retrieval.chunking import Size
from wayline.retrieval.decode_document import Limits
from wayline.retrieval.embed_passages import PassageEmbedder
from wayline.retrieval.embed_texts import TextEmbedder
from wayline.retrieval.index_document import Indexer
from wayline.retrieval.search_passages import Searcher
from wayline.retrieval.settings import Settings
from wayline.store import Store, migrate
from wayline.telemetry import Telemetry

SETS = ("ir-anthropic-docs", "ir-cacm", "ir-cranfield", "ir-scifact-train")
CUT, DEPTH = 10, 100
INDEXED_AT_ONCE = 8
LONG = 12
"""Questions that make one long query, whose latency alone means something."""
INDEX_SIZES = """
    SELECT pg_relation_size('retrieval.chunks_words') AS words, pg_total_relation_size('retrieval.chunks') AS all
"""


@dataclass(frozen=True)
class JudgedSet:
    """Documents, questions, and which document answers which question how well."""

    name: str
    documents: dict[str, dict[str, Any]]
    queries: dict[str, str]
    grades: dict[str, dict[str, int]]


def load(folder: Path) -> JudgedSet:
    documents = {item["_id"]: item for item in _lines(folder / "corpus.jsonl.gz")}
    grades: dict[str, dict[str, int]] = {}
    with gzip.open(folder / "qrels.tsv.gz", "rt", encoding="utf-8") as rows:
        next(rows)
        for row in rows:
            query, document, grade = row.rstrip("\n").split("\t")
            if int(grade) > 0:
                grades.setdefault(query, {})[document] = int(grade)
    queries = {item["_id"]: item["text"] for item in _lines(folder / "queries.jsonl.gz") if item["_id"] in grades}
    return JudgedSet(folder.name, documents, queries, grades)


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def ndcg(ranked: list[str], grades: dict[str, int]) -> float:
    gain = sum(grades.get(name, 0) / math.log2(at + 2) for at, name in enumerate(ranked[:CUT]))
    best = sum(grade / math.log2(at + 2) for at, grade in enumerate(sorted(grades.values(), reverse=True)[:CUT]))
    return gain / best


def recall(ranked: list[str], grades: dict[str, int]) -> float:
    return len(set(ranked[:DEPTH]) & grades.keys()) / len(grades)


async def ingest(store: Store, judged: JudgedSet, settings: Settings, tenant: str) -> None:
    limits = Limits(settings.document_bytes_max, settings.pdf_pages_max, settings.read_seconds_max, 16_384)
    passages = PassageEmbedder(KeptEmbeddingTable(store), Telemetry("bench"))
    size = Size(settings.chunk_chars, settings.chunk_tokens)
    indexer = Indexer(DocumentTable(store), app.make_embedder(settings), passages, limits, size)
    slots = asyncio.Semaphore(INDEXED_AT_ONCE)

    async def last() -> int:
        return len(judged.documents)

    async def one(sequence: int, item: dict[str, Any]) -> None:
        text = item["text"] if item["text"].strip() else item["title"] or "-"
        asked = IndexDocument(tenant=tenant, document_id=item["_id"], name=item["title"][:500] or "-", text=text)
        async with slots:
            await indexer.index(asked, sequence=sequence, first_delivery=True, stream_last=last)

    await asyncio.gather(*(one(at, item) for at, item in enumerate(judged.documents.values(), start=1)))
    await WordCounts(store).add_all()
    await store.execute(tenant, "ANALYZE")


async def measure_long(searcher: Searcher, judged: JudgedSet, tenant: str) -> tuple[float, float]:
    """Return the median and the 95th percentile of long queries' milliseconds."""
    texts = list(judged.queries.values())
    seconds = []
    for at in range(0, len(texts) - LONG + 1, LONG):
        query = " ".join(texts[at : at + LONG])[:10_000]
        started = time.perf_counter()
        await searcher.search(SearchKnowledge(tenant=tenant, query=query, mode="keyword"))
        seconds.append(time.perf_counter() - started)
    seconds.sort()
    return statistics.median(seconds) * 1000, seconds[int(len(seconds) * 0.95)] * 1000


async def measure(searcher: Searcher, judged: JudgedSet, tenant: str, **how: Any) -> tuple[float, float, float, float]:
    gains, recalls, seconds = [], [], []
    for query_id, text in judged.queries.items():
        asked = SearchKnowledge(tenant=tenant, query=text[:10_000], top_k=DEPTH * 2, **how)
        started = time.perf_counter()
        found = await searcher.search(asked)
        seconds.append(time.perf_counter() - started)
        ranked = [name for name in dict.fromkeys(hit.document_id for hit in found.hits) if name != query_id]
        gains.append(ndcg(ranked, judged.grades[query_id]))
        recalls.append(recall(ranked, judged.grades[query_id]))
    seconds.sort()
    return (
        statistics.mean(gains),
        statistics.mean(recalls),
        statistics.median(seconds) * 1000,
        seconds[int(len(seconds) * 0.95)] * 1000,
    )


async def main(data: Path, names: list[str], settings: Settings) -> None:
    with tempfile.TemporaryDirectory(prefix="wayline-bench-") as directory:
        os.chmod(directory, 0o711)
        server = PostgresServer(Path(directory) / "postgres", settings={"fsync": "off"})
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
            store = await open_store(server.dsn(user="bench", password="bench"), pool_size=12, wait_s=5)
            try:
                print(f"{'set':18} {'mode':14} nDCG@10  R@100   p50 ms   p95 ms")
                for name in names:
                    await one_set(store, load(data / name), settings)
            finally:
                await store.close()
        finally:
            await server.stop()


async def one_set(store: Store, judged: JudgedSet, settings: Settings) -> None:
    tenant = judged.name
    started = time.perf_counter()
    await ingest(store, judged, settings, tenant)
    took = time.perf_counter() - started
    searcher = Searcher(
        PassageTable(store),
        app.query_embedder(settings, TextEmbedder(app.make_embedder(settings), Telemetry("bench"))),
        Telemetry("bench"),
        settings.keyword_candidates,
        settings.leg_candidates,
    )
    print(f"{judged.name}: {len(judged.documents)} documents in {took:.1f} s, {len(judged.queries)} queries")
    for label, how in (
        ("keyword", {"mode": "keyword"}),
        ("vector", {"mode": "vector"}),
        ("hybrid", {"mode": "hybrid"}),
        ("hybrid 0.5", {"mode": "hybrid", "vector_weight": 0.5}),
    ):
        gain, found, p50, p95 = await measure(searcher, judged, tenant, **how)
        print(f"{judged.name:18} {label:14} {gain:.4f}  {found:.4f}  {p50:6.1f}  {p95:7.1f}", flush=True)
    p50, p95 = await measure_long(searcher, judged, tenant)
    print(f"{judged.name:18} {f'{LONG} at once':14} {'':6}  {'':6}  {p50:6.1f}  {p95:7.1f}", flush=True)
    sizes = await store.fetchrow(tenant, INDEX_SIZES)
    assert sizes is not None
    print(
        f"all so far: word index {sizes['words'] / 1e6:.1f} MB, passages with all indexes {sizes['all'] / 1e6:.1f} MB"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("WAYLINE_BENCH_DATA", "no-such-folder")))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--chunk-chars", type=int, default=Settings.model_fields["chunk_chars"].default)
    given = parser.parse_args()
    wanted = given.sets.split(",")
    absent = [name for name in wanted if not (given.data / name).is_dir()]
    if absent:
        print(f"skipped: no judged sets to measure with ({', '.join(absent)}); name their folder with --data")
        sys.exit(0)
    asyncio.run(main(given.data, wanted, Settings(chunk_chars=given.chunk_chars)))
