"""How well retrieval finds what people judged relevant: nDCG@10, recall, MRR and latency of each mode, and index sizes.

    python -m tests.bench.retrieval_quality [--data DIR] [--sets ir-cacm,…] [--vectors FILE] [--write FILE]

DIR holds one folder a set, each with corpus.jsonl.gz, queries.jsonl.gz and qrels.tsv.gz as BEIR lays them out; what is
missing is left out. Two sets are in this repository: texts in eight languages, and identifiers. Vectors are the lexical
ones, and those of the model on board; these are remembered in a file, since whole sets take it a quarter of an hour.
`--write` puts the table into a page, between its two marks.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import math
import os
import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench import page
from tests.bench.remembered_vectors import VECTORS_FILE, RememberedVectors
from tests.bench.retrieval_database import Database, analyze, database
from wayline.contracts.knowledge import IndexDocument, SearchKnowledge
from wayline.retrieval import app
from wayline.retrieval.documents.decode_document import Limits
from wayline.retrieval.documents.document_table import DocumentTable
from wayline.retrieval.documents.index_document import Indexer
from wayline.retrieval.documents.wiring import passage_size
from wayline.retrieval.embeddings.embed_passages import PassageEmbedder
from wayline.retrieval.embeddings.embed_texts import TextEmbedder
from wayline.retrieval.embeddings.embedding import Embedder, LexicalHash
from wayline.retrieval.embeddings.kept_embeddings import KeptEmbeddingTable
from wayline.retrieval.embeddings.minilm.on_board import OnBoard
from wayline.retrieval.search.passage_table import PassageTable
from wayline.retrieval.search.search_passages import Searcher
from wayline.retrieval.search.wiring import query_embedder
from wayline.retrieval.search.word_counts import WordCounts
from wayline.retrieval.settings import Settings
from wayline.store import Store
from wayline.telemetry import Telemetry

OWN_SETS = Path(__file__).parents[1] / "evals/retrieval/sets"
OWN = ("multilingual", "identifiers")
BM25S = {"ir-anthropic-docs": 0.7139, "ir-cacm": 0.4929, "ir-cranfield": 0.3648, "ir-scifact-train": 0.6964}
"""nDCG@10 of bm25s with k1 1.5 and b .75 on whole documents, as the data's README gives it."""
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


def load_multilingual() -> JudgedSet:
    """Load questions in eight languages, each of which one text answers."""
    told = json.loads((OWN_SETS / "multilingual.json").read_text(encoding="utf-8"))
    documents = {key: {"_id": key, "title": "page", "text": text} for key, text in told["documents"].items()}
    queries = {f"q{n} {meant}": query for n, (query, meant) in enumerate(told["queries"])}
    grades = {f"q{n} {meant}": {meant: 1} for n, (_, meant) in enumerate(told["queries"])}
    return JudgedSet("multilingual", documents, queries, grades)


def load_identifiers() -> JudgedSet:
    """Load identifiers, each in one text, beside a text of the same parts for each."""
    told = json.loads((OWN_SETS / "identifiers.json").read_text(encoding="utf-8"))
    documents, queries, grades = dict[str, dict[str, Any]](), dict[str, str](), dict[str, dict[str, int]]()
    for n, case in enumerate(told["cases"]):
        for kind in ("means", "trap"):
            key = f"{kind}-{n}"
            documents[key] = {"_id": key, "title": "page", "text": case[kind]}
        queries[f"q{n}"], grades[f"q{n}"] = case["query"], {f"means-{n}": 1}
    return JudgedSet("identifiers", documents, queries, grades)


def load_set(name: str, data: Path) -> JudgedSet | None:
    """Load a set by its name; None: it is not there."""
    if name in OWN:
        return {"multilingual": load_multilingual, "identifiers": load_identifiers}[name]()
    return load(data / name) if (data / name).is_dir() else None


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def ndcg(ranked: list[str], grades: dict[str, int]) -> float:
    gain = sum(grades.get(name, 0) / math.log2(at + 2) for at, name in enumerate(ranked[:CUT]))
    best = sum(grade / math.log2(at + 2) for at, grade in enumerate(sorted(grades.values(), reverse=True)[:CUT]))
    return gain / best


def recall(ranked: list[str], grades: dict[str, int], depth: int = DEPTH) -> float:
    return len(set(ranked[:depth]) & grades.keys()) / len(grades)


def reciprocal_rank(ranked: list[str], grades: dict[str, int]) -> float:
    return next((1 / at for at, name in enumerate(ranked, start=1) if name in grades), 0.0)


@dataclass(frozen=True)
class Measures:
    """What one mode reaches on one set."""

    ndcg: float
    recall_10: float
    recall_100: float
    mrr: float
    p50_ms: float
    p95_ms: float


async def ingest(
    store: Store, judged: JudgedSet, settings: Settings, tenant: str, embedder: Embedder | None = None
) -> None:
    """Index the documents of a set; the owner of the tables may `analyze` them then."""
    limits = Limits(settings.document_bytes_max, settings.pdf_pages_max, settings.read_seconds_max, 16_384)
    passages = PassageEmbedder(KeptEmbeddingTable(store), Telemetry("bench"))
    size = passage_size(settings)
    indexer = Indexer(DocumentTable(store), embedder or app.make_embedder(settings), passages, limits, size)
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


async def measure(searcher: Searcher, judged: JudgedSet, tenant: str, **how: Any) -> Measures:
    ranked, seconds = await answers(searcher, judged, tenant, **how)
    pairs = [(ranked[key], judged.grades[key]) for key in judged.queries]
    seconds.sort()
    return Measures(
        ndcg=statistics.mean(ndcg(*pair) for pair in pairs),
        recall_10=statistics.mean(recall(*pair, CUT) for pair in pairs),
        recall_100=statistics.mean(recall(*pair) for pair in pairs),
        mrr=statistics.mean(reciprocal_rank(*pair) for pair in pairs),
        p50_ms=statistics.median(seconds) * 1000,
        p95_ms=seconds[int(len(seconds) * 0.95)] * 1000,
    )


async def answers(
    searcher: Searcher, judged: JudgedSet, tenant: str, **how: Any
) -> tuple[dict[str, list[str]], list[float]]:
    """Return the documents that each query finds, best first, and the seconds that each took."""
    ranked, seconds = {}, []
    for query_id, text in judged.queries.items():
        asked = SearchKnowledge(tenant=tenant, query=text, top_k=DEPTH * 2, **how)
        started = time.perf_counter()
        found = await searcher.search(asked)
        seconds.append(time.perf_counter() - started)
        ranked[query_id] = [name for name in dict.fromkeys(hit.document_id for hit in found.hits) if name != query_id]
    return ranked, seconds


async def main(sets: list[JudgedSet], embedders: Mapping[str, Embedder]) -> list[str]:
    """Measure each set, print what is measured, and return the rows of the table."""
    rows = [HEADER, HEADER_RULE]
    async with database() as base:
        for judged in sets:
            rows += await one_set(base, judged, embedders)
    return rows


HEADER = "| set | mode | nDCG@10 | recall@10 | MRR | recall@100 | p50 ms | bm25s nDCG@10 |"
HEADER_RULE = "|---|---|--:|--:|--:|--:|--:|--:|"
MODES = ("keyword", "vector", "hybrid")


def make_searcher(store: Store, settings: Settings, embedder: Embedder | None = None) -> Searcher:
    texts = TextEmbedder(embedder or app.make_embedder(settings), Telemetry("bench"))
    return Searcher(
        PassageTable(store),
        query_embedder(settings, texts),
        Telemetry("bench"),
        settings.keyword_candidates,
        settings.leg_candidates,
    )


async def one_set(base: Database, judged: JudgedSet, embedders: Mapping[str, Embedder]) -> list[str]:
    """Measure the modes with each embedder; words alone once, for they have none."""
    rows: list[str] = []
    for number, (kind, embedder) in enumerate(embedders.items()):
        settings, tenant = Settings(embedding_model=embedder.model), f"{judged.name}-{number}"
        started = time.perf_counter()
        await ingest(base.store, judged, settings, tenant, embedder)
        await analyze(base.server.dsn())
        took = time.perf_counter() - started
        searcher = make_searcher(base.store, settings, embedder)
        print(f"{judged.name}: {len(judged.documents)} documents in {took:.1f} s, {len(judged.queries)} queries")
        for mode in MODES[1 if number else 0 :]:
            got = await measure(searcher, judged, tenant, mode=mode)
            reference = f"{BM25S[judged.name]:.3f}" if judged.name in BM25S else ""
            label = mode if mode == "keyword" else f"{mode}, {kind}"
            rows.append(
                f"| {judged.name} | {label} | {got.ndcg:.3f} | {got.recall_10:.3f} | {got.mrr:.3f} "
                f"| {got.recall_100:.3f} | {got.p50_ms:.0f} | {reference} |"
            )
            print(rows[-1], flush=True)
        if number == 0 and len(judged.queries) >= LONG:
            p50, p95 = await measure_long(searcher, judged, tenant)
            print(f"{LONG} queries at once: p50 {p50:.1f} ms, p95 {p95:.1f} ms", flush=True)
    sizes = await base.store.fetchrow(f"{judged.name}-0", INDEX_SIZES)
    assert sizes is not None
    print(
        f"all so far: word index {sizes['words'] / 1e6:.1f} MB, passages with all indexes {sizes['all'] / 1e6:.1f} MB"
    )
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("WAYLINE_SHARED", "../shared")) / "data")
    parser.add_argument("--sets", default=",".join((*OWN, *SETS)))
    parser.add_argument("--vectors", type=Path, default=VECTORS_FILE, help="what was embedded before is kept here")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    wanted = {name: load_set(name, given.data) for name in given.sets.split(",")}
    if absent := [name for name, judged in wanted.items() if judged is None]:
        print(f"not here, and left out: {', '.join(absent)}; name their folder with --data")
    loaded = [judged for judged in wanted.values() if judged is not None]
    board = RememberedVectors(OnBoard(threads=1), given.vectors)
    table = asyncio.run(main(loaded, {"lexical": LexicalHash(), "on board": board}))
    if given.write:
        page.write(given.write, "quality", "\n".join(table) + "\n", by="make retrieval-quality")
