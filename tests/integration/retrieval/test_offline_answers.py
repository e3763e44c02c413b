"""What the offline model answers from passages that are really found, and what it declines."""

from __future__ import annotations

from typing import Any

from tests.integration.retrieval.handbook import ANSWERED, DOCUMENTS, UNANSWERED
from wayline.chassis import Service
from wayline.contracts.chat import AssistantMessage, Citation, TextPart, ToolMessage, UserMessage
from wayline.contracts.knowledge import COVERED
from wayline.contracts.models import ModelCard
from wayline.contracts.tools import ToolDefinition
from wayline.llm.model import ModelRequest
from wayline.llm.offline import PASSAGES_ASKED, SEARCH, respond

RIGHT_MIN = 26
DECLINED_MIN = 14


async def test_right_passages_are_quoted_and_other_questions_declined(service: Service, client: Any):
    for name, text in DOCUMENTS.items():
        await client.send(name, text, name=name, media_type="text/markdown")
    await client.idle()

    missed = [
        question
        for question, document, words in ANSWERED
        if not _right(await answer(client, question), document, words)
    ]
    said = [question for question in UNANSWERED if (await answer(client, question)).citations]

    assert len(ANSWERED) - len(missed) >= RIGHT_MIN, missed
    assert len(UNANSWERED) - len(said) >= DECLINED_MIN, said


async def answer(client: Any, question: str) -> AssistantMessage:
    found = await client.search(question, top_k=PASSAGES_ASKED)
    citations = tuple(
        Citation(
            document=hit.document,
            document_id=hit.document_id,
            chunk_id=hit.chunk_id,
            quote=hit.text,
            covered=hit.why.get(COVERED),
        )
        for hit in found.hits
    )
    result = ToolMessage(call="1", tool=SEARCH, content="", citations=citations)
    asked = UserMessage(parts=(TextPart(text=question),))
    card = ModelCard(provider="offline", model="extractive", tier="flash")
    return respond(ModelRequest(card, "", (asked, result), (ToolDefinition(name=SEARCH),), 1_000, "attempt"))


def _right(message: AssistantMessage, document: str, words: str) -> bool:
    return bool(message.citations) and message.citations[0].document == document and words in message.citations[0].quote
