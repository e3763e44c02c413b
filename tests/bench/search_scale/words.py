"""Words alone at a million short passages: time, how many are ranked one by one, and what that loses."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tests.bench.retrieval_database import Database
from tests.bench.search_scale.passages import Mixer
from wayline.contracts.knowledge import SearchKnowledge
from wayline.retrieval.search.search_passages import Searcher
from wayline.retrieval.search.segments import SegmentBuilder
from wayline.retrieval.search.word_counts import WordCounts

TENANT = "words"
PASSAGES_OF_DOCUMENT = 1_000
BATCH = 20
"""Documents of one statement."""
CUT = 10
# The service's own functions; documents and passages as `DocumentTable` stores them, many in one statement.
STORE = """
    WITH given AS (
        SELECT * FROM unnest($2::bigint[], $3::bigint[], $4::text[]) AS one (document, passage, text)
    ),
    held AS (
        INSERT INTO documents (tenant, document_id, name, media_type, size_bytes, metadata, embedding_model, sequence,
            status, chunks_done, chunks_total)
        SELECT $1, 'd' || document, 'Notes', 'text/plain', 1, '{}', 'none', 1, 'ready', count(*), count(*)
        FROM given GROUP BY document
    )
    INSERT INTO chunks (tenant, chunk_id, document_id, position, name, text, metadata, words, words_count,
        embedding_model, dimensions)
    SELECT $1, 'd' || document || '#' || passage, 'd' || document, passage, 'Notes', text, '{}', words,
        coalesce((SELECT sum(cardinality(positions)) FROM unnest(words)), 0), 'none', 0
    FROM given, words_of('Notes', '', text, 'en') AS words
"""


@dataclass(frozen=True)
class Words:
    """What searching by words takes, and how many of the ten best of all it finds."""

    passages: int
    stored_s: float
    segmented_s: float
    p50_ms: float
    p99_ms: float
    ratio: float
    """The passages that the ranking statement looks at, beside all."""
    overlap: float


async def store_short(base: Database, mixer: Mixer, passages: int) -> tuple[float, float]:
    """Store short passages and build their postings; return the seconds of both."""
    started = time.perf_counter()
    documents = range(passages // PASSAGES_OF_DOCUMENT)
    for at in range(0, len(documents), BATCH):
        rows = [(n, one, mixer.short()) for n in documents[at : at + BATCH] for one in range(PASSAGES_OF_DOCUMENT)]
        async with base.store.tenant(TENANT) as conn:
            await conn.execute(STORE, TENANT, *(list(column) for column in zip(*rows, strict=True)), timeout=600)
            for n in documents[at : at + BATCH]:
                await conn.execute(base.store.sql.note_counts, TENANT, f"d{n}", 0, PASSAGES_OF_DOCUMENT, 1)
        await WordCounts(base.store).add_all()
    stored = time.perf_counter() - started
    async with base.owner() as conn:
        await conn.execute("VACUUM ANALYZE", timeout=3_600)
    started = time.perf_counter()
    await SegmentBuilder(base.store).build_all()
    return stored, time.perf_counter() - started


async def search_words(
    searcher: Searcher, every: Searcher, queries: Sequence[str], *, stored: tuple[float, float], passages: int
) -> Words:
    """Ask by words; `every` ranks all that has any word, so a few of the queries are enough for it."""
    seconds, ranked = [], []
    for text in queries:
        asked = SearchKnowledge(tenant=TENANT, query=text, mode="keyword", top_k=CUT, fold_duplicates=False)
        started = time.perf_counter()
        found = await searcher.search(asked)
        seconds.append(time.perf_counter() - started)
        if len(ranked) < len(queries) // 5:
            best = (await every.search(asked)).hits
            # A passage as good as the last of them counts: many short ones are alike.
            least = min((hit.why["keyword"]["score"] for hit in best), default=0.0) - 1e-9
            good = sum(hit.why["keyword"]["score"] >= least for hit in found.hits)
            ranked.append(good / len(best) if best else 1.0)
    seconds.sort()
    return Words(
        passages,
        *stored,
        p50_ms=statistics.median(seconds) * 1000,
        p99_ms=seconds[int(len(seconds) * 0.99)] * 1000,
        ratio=searcher.keyword_candidates / passages,
        overlap=statistics.mean(ranked),
    )
