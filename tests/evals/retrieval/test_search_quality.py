"""Search finds on public sets what people judged relevant: words as well as the best known library, both no worse."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest

from tests.bench import retrieval_quality as quality
from wayline.retrieval import app
from wayline.retrieval.embeddings.embed_texts import TextEmbedder
from wayline.retrieval.postgres import open_store
from wayline.retrieval.search.passage_table import PassageTable
from wayline.retrieval.search.search_passages import Searcher
from wayline.retrieval.search.segments import SegmentBuilder
from wayline.retrieval.search.wiring import query_embedder
from wayline.retrieval.settings import Settings
from wayline.store import Store, migrate
from wayline.telemetry import Telemetry
from wayline.testkit import Database

from ..shared import needed

BM25S = quality.BM25S
BELOW_MAX = 0.01
"""How far below it the words may be on one set."""
EQUAL = 0.0005
"""What vectors change of the words' order by filling places that words leave."""
RECALL_MIN = 0.9
"""Of every language."""
FIRST_MIN = 0.95
RATIO_AT_A_MILLION = 0.002
"""The share of a million passages that a search ranks one by one."""
LOST_MAX = 0.01
"""How much nDCG@10 may differ from that of ranking every passage with any of the words."""


@dataclass(frozen=True)
class Measured:
    """nDCG@10 of each mode."""

    keyword: float
    vector: float
    hybrid: float


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    await migrate(
        database.dsn, schema="retrieval", role="eval", password="eval", directory=app.migrations(), vector=True
    )
    store = await open_store(database.as_role("eval", "eval"), pool_size=12, wait_s=5)
    yield store
    await store.close()


def make_searcher(store: Store, settings: Settings, keyword_candidates: int) -> Searcher:
    texts = query_embedder(settings, TextEmbedder(app.make_embedder(settings), Telemetry("eval")))
    return Searcher(PassageTable(store), texts, Telemetry("eval"), keyword_candidates, settings.leg_candidates)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", BM25S)
async def test_keyword_search_matches_bm25s_and_hybrid_matches_its_better_half(
    store: Store, tell: Callable[[str], None], name: str
):
    judged, settings = quality.load(needed(name)), Settings()
    await quality.ingest(store, judged, settings, name)
    searcher = make_searcher(store, settings, settings.keyword_candidates)
    measured = Measured(
        **{
            mode: (await quality.measure(searcher, judged, name, mode=mode)).ndcg
            for mode in ("keyword", "vector", "hybrid")
        }
    )
    tell(f"{name}: {measured}, bm25s {BM25S[name]}")

    assert measured.keyword >= BM25S[name] - BELOW_MAX
    assert measured.hybrid >= max(measured.keyword, measured.vector) - EQUAL


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["ir-cranfield", "ir-cacm"])
async def test_keyword_quality_holds_at_the_candidate_ratio_of_a_million_passages(
    store: Store, tell: Callable[[str], None], name: str
):
    judged, settings = quality.load(needed(name)), Settings()
    await quality.ingest(store, judged, settings, name)
    chunks = await store.fetchval(name, "SELECT sum(chunks)::float8 FROM corpora WHERE tenant = $1", name)
    every = await quality.measure(make_searcher(store, settings, 10**9), judged, name, mode="keyword")
    few = make_searcher(store, settings, int(chunks * RATIO_AT_A_MILLION))
    without = await quality.measure(few, judged, name, mode="keyword")
    await SegmentBuilder(store, chunks_min=1).build_all()
    with_postings = await quality.measure(few, judged, name, mode="keyword")
    tell(f"{name}: nDCG@10, R@100 and ms: every {every}, few {without}, with postings {with_postings}")

    assert with_postings.ndcg >= every.ndcg - LOST_MAX
    assert with_postings.recall_100 >= every.recall_100 - LOST_MAX


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
async def test_words_of_eight_languages_are_found_in_any_form(store: Store, tell: Callable[[str], None], mode: str):
    judged, settings = quality.load_multilingual(), Settings()
    await quality.ingest(store, judged, settings, judged.name)
    searcher = quality.make_searcher(store, settings)
    ranked, _ = await quality.answers(searcher, judged, judged.name, mode=mode)

    found: dict[str, list[bool]] = {}
    for key, documents in ranked.items():
        [meant] = judged.grades[key]
        found.setdefault(meant[:2], []).append(meant in documents[: quality.CUT])
    missed = [key for key, documents in ranked.items() if not judged.grades[key].keys() & set(documents[:10])]
    tell(f"recall@10 by language in {mode}: { {key: sum(got) / len(got) for key, got in found.items()} }, not {missed}")

    assert len(ranked) >= 60
    assert min(sum(got) / len(got) for got in found.values()) >= RECALL_MIN


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
async def test_identifiers_are_found_first(store: Store, tell: Callable[[str], None], mode: str):
    judged, settings = quality.load_identifiers(), Settings()
    await quality.ingest(store, judged, settings, judged.name)
    ranked, _ = await quality.answers(quality.make_searcher(store, settings), judged, judged.name, mode=mode)

    missed = [judged.queries[key] for key, documents in ranked.items() if documents[:1] != list(judged.grades[key])]
    tell(f"{len(ranked) - len(missed)} of {len(ranked)} identifiers first in {mode}; not {missed}")

    assert len(ranked) >= 60
    assert len(missed) <= len(ranked) * (1 - FIRST_MIN)
