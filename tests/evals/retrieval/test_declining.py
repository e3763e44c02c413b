"""The offline model answers what the knowledge base holds and declines what it does not, on public questions."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator, Callable

import pytest

from tests.bench import retrieval_quality as quality
from wayline.contracts.chat import Citation, TextPart, ToolMessage, UserMessage
from wayline.contracts.knowledge import COVERED, SearchKnowledge
from wayline.contracts.models import ModelCard
from wayline.llm import ModelRequest
from wayline.llm.offline import SEARCH, respond
from wayline.retrieval import app
from wayline.retrieval.embeddings.embed_texts import TextEmbedder
from wayline.retrieval.postgres import open_store
from wayline.retrieval.search.passage_table import PassageTable
from wayline.retrieval.search.search_passages import Searcher
from wayline.retrieval.search.wiring import query_embedder
from wayline.retrieval.settings import Settings
from wayline.store import Store, migrate
from wayline.telemetry import Telemetry
from wayline.testkit import Database

from ..shared import needed, rows

TENANT = "questions"
CARD = ModelCard(provider="offline", model="extractive", tier="flash")
FAR = ("ir-cacm", "ir-scifact-train", "ir-cranfield")
FAR_QUESTIONS = 60
DEEP = 25
"""Passages asked for, so that five are left where those that answer are taken away."""
ANSWERED_MIN, DECLINED_MIN, FAR_DECLINED_MIN = 0.67, 0.67, 0.96
"""Where names weigh like other words, 0.8 are answered and 0.63 declined: of the wrong thing, too."""


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    await migrate(
        database.dsn, schema="retrieval", role="eval", password="eval", directory=app.migrations(), vector=True
    )
    store = await open_store(database.as_role("eval", "eval"), pool_size=12, wait_s=5)
    yield store
    await store.close()


def answers(question: str, citations: list[Citation]) -> bool:
    asked = UserMessage(parts=(TextPart(text=question),))
    found = ToolMessage(call="1", tool=SEARCH, content="", citations=tuple(citations[:5]))
    return bool(respond(ModelRequest(CARD, "", (asked, found), (), 1_000, "a")).citations)


@pytest.mark.timeout(1_200)
@pytest.mark.usefixtures("model_on_board")
async def test_it_declines_once_the_documents_with_the_answer_are_removed(store: Store, tell: Callable[[str], None]):
    settings, judged = Settings(), quality.load(needed("ir-anthropic-docs"))
    for name in ("state_of_the_union", "wikitexts", "chatlogs"):
        text = gzip.decompress(needed("chunking-chroma-dev", f"{name}.md.gz").read_bytes()).decode()
        for at in range(0, len(text), 4_000):
            key = f"{name}-{at}"
            judged.documents[key] = {"_id": key, "title": name, "text": text[at : at + 4_000]}
    await quality.ingest(store, judged, settings, TENANT)
    telemetry = Telemetry("eval")
    embedder = query_embedder(settings, TextEmbedder(app.make_embedder(settings), telemetry))
    searcher = Searcher(PassageTable(store), embedder, telemetry, settings.keyword_candidates, settings.leg_candidates)

    async def passages(question: str) -> list[Citation]:
        hits = (await searcher.search(SearchKnowledge(tenant=TENANT, query=question, top_k=DEEP))).hits
        return [
            Citation(document=hit.document, quote=hit.text, document_id=hit.document_id, covered=hit.why.get(COVERED))
            for hit in hits
        ]

    cases = [(text, set(judged.grades[key])) for key, text in judged.queries.items()]
    for row in rows("chunking-chroma-dev", "questions.jsonl.gz"):
        spans = [(ref["start_index"], ref["end_index"]) for ref in row["references"]]
        pieces = {f"{row['corpus']}-{at // 4_000 * 4_000}" for span in spans for at in span}
        cases.append((row["question"], pieces))
    answered = declined = 0
    for question, relevant in cases:
        found = await passages(question)
        answered += answers(question, found)
        declined += not answers(question, [one for one in found if one.document_id not in relevant])
    far = [text for name in FAR for text in list(quality.load(needed(name)).queries.values())[:FAR_QUESTIONS]]
    far_declined = sum([not answers(question, await passages(question)) for question in far])
    tell(
        f"offline model: {answered} of {len(cases)} answered, {declined} declined without the passages that answer, "
        f"{far_declined} of {len(far)} foreign questions declined"
    )

    assert answered >= ANSWERED_MIN * len(cases)
    assert declined >= DECLINED_MIN * len(cases)
    assert far_declined >= FAR_DECLINED_MIN * len(far)
