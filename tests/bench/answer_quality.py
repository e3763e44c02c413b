"""How often the offline model quotes what answers a question, and how often it declines where nothing does.

    python -m tests.bench.answer_quality [--show] [--write docs/models.md]

The questions, and the documents that answer them, are in this repository (tests/evals/retrieval/sets/answers.json), in
two halves: the rules were improved on `dev`, not on the other, which was measured once they were finished. A question
goes the service's way: search, then the model reads what was found. An answer is right whose first quote is of the
right document and holds the words that answer. `--show` prints what went wrong in `dev`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench import page
from tests.bench import retrieval_quality as quality
from tests.bench.retrieval_database import database
from wayline.contracts.chat import Citation, TextPart, ToolMessage, UserMessage
from wayline.contracts.knowledge import COVERED, SearchKnowledge
from wayline.contracts.models import ModelCard
from wayline.llm import ModelRequest
from wayline.llm.offline import PASSAGES_ASKED, SEARCH, respond
from wayline.retrieval.search.search_passages import Searcher
from wayline.retrieval.settings import Settings
from wayline.store import Store

TENANT = "answers"
HALVES = ("dev", "held-out")
CARD = ModelCard(provider="offline", model="extractive", tier="flash")


@dataclass(frozen=True)
class Question:
    """A question, the document and the words that answer it (none: nothing does), and where it belongs."""

    text: str
    half: str
    language: str
    document: str | None = None
    words: str | None = None


@dataclass(frozen=True)
class Answered:
    """What came of a question."""

    question: Question
    quotes: tuple[Citation, ...]

    @property
    def good(self) -> bool:
        if self.question.words is None:
            return not self.quotes
        first = self.quotes[0] if self.quotes else None
        return first is not None and first.document == self.question.document and self.question.words in first.quote


def load() -> tuple[dict[str, str], list[Question]]:
    """Load the documents and the questions."""
    told = json.loads((quality.OWN_SETS / "answers.json").read_text(encoding="utf-8"))
    questions = [Question(far["question"], far["half"], far["language"]) for far in told["far"]]
    for document in told["documents"]:
        of = (document["half"], document["language"])
        questions += [Question(text, *of, document["name"], words) for text, words in document["asked"]]
        questions += [Question(text, *of) for text in document["unanswered"]]
    return {document["name"]: document["text"] for document in told["documents"]}, questions


async def found_passages(
    store: Store, questions: Sequence[Question], documents: dict[str, str]
) -> list[list[Citation]]:
    """Return what the default search finds for each question."""
    judged = quality.JudgedSet(
        TENANT, {name: {"_id": name, "title": name, "text": text} for name, text in documents.items()}, {}, {}
    )
    await quality.ingest(store, judged, Settings(), TENANT)
    searcher = quality.make_searcher(store, Settings())
    return [await _passages(searcher, question.text) for question in questions]


async def _passages(searcher: Searcher, question: str) -> list[Citation]:
    found = await searcher.search(SearchKnowledge(tenant=TENANT, query=question, top_k=PASSAGES_ASKED))
    return [
        Citation(document=hit.document, quote=hit.text, document_id=hit.document_id, covered=hit.why.get(COVERED))
        for hit in found.hits
    ]


def answer(question: Question, passages: Sequence[Citation]) -> Answered:
    """Let the offline model answer from what was found."""
    asked = UserMessage(parts=(TextPart(text=question.text),))
    found = ToolMessage(call="1", tool=SEARCH, content="", citations=tuple(passages))
    return Answered(question, respond(ModelRequest(CARD, "", (asked, found), (), 1_000, "a")).citations)


def share(
    answered: Sequence[Answered], *, answerable: bool, half: str | None = None, english: bool | None = None
) -> str:
    """Return how many are good, and of how many."""
    good = [
        one.good
        for one in answered
        if (one.question.words is not None) is answerable
        and half in (None, one.question.half)
        and english in (None, one.question.language == "en")
    ]
    return f"{sum(good)} of {len(good)} ({sum(good) / len(good):.1%})"


def table(answered: Sequence[Answered]) -> str:
    """Return the table of both halves, and of all."""

    def line(name: str, half: str | None = None, english: bool | None = None) -> list[str]:
        return [name, *(share(answered, answerable=kind, half=half, english=english) for kind in (True, False))]

    lines = [line(half, half) for half in HALVES]
    lines += [line("both"), line("both, English", english=True), line("both, other languages", english=False)]
    return page.table(["half", "answered with the right quote", "declined where nothing answers"], lines)


async def main() -> list[Answered]:
    documents, questions = load()
    async with database() as base:
        passages = await found_passages(base.store, questions, documents)
    return [answer(question, found) for question, found in zip(questions, passages, strict=True)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    every = asyncio.run(main())
    for one in every if given.show else ():
        if one.question.half == "dev" and not one.good:
            print(one.question, *(f"    {quote.document}: {quote.quote}" for quote in one.quotes), sep="\n")
    print(table(every))
    if given.write:
        page.write(given.write, "answers", table(every), by="make answer-quality")
