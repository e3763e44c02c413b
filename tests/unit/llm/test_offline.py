"""The offline model: searches, quotes, and never pretends."""

import pytest

from wayline.contracts.chat import Citation, FilePart, ImagePart, TextPart, ToolMessage, UserMessage
from wayline.contracts.models import ModelCard
from wayline.contracts.tools import ToolDefinition
from wayline.llm import Finished, ModelError, ModelRequest, TextDelta
from wayline.llm.offline import LABEL, QUOTE_CHARS_MAX, OfflineModel, respond

SEARCH = ToolDefinition(name="search_knowledge")
QUESTION = UserMessage(parts=(TextPart(text="How long is a lease renewed for?"),))


def request(*messages, tools=(SEARCH,)) -> ModelRequest:
    return ModelRequest(
        ModelCard(provider="offline", model="extractive", tier="flash"), "be careful", messages, tools, 1_000, "a"
    )


def found(*passages: tuple[str, str], failed: bool = False) -> ToolMessage:
    citations = tuple(Citation(document=name, quote=text) for name, text in passages)
    return ToolMessage(call="1", tool="search_knowledge", content="…", citations=citations, failed=failed)


def test_it_searches_before_it_answers():
    answer = respond(request(QUESTION))

    assert answer.text == ""
    assert [(call.tool, call.arguments["query"]) for call in answer.tool_calls] == [
        ("search_knowledge", "How long is a lease renewed for?")
    ]


def test_files_in_the_input_narrow_the_search():
    asked = UserMessage(parts=(TextPart(text="What does it say?"), FilePart(document_id="d1")))

    assert respond(request(asked)).tool_calls[0].arguments["document_ids"] == ["d1"]


def test_it_answers_with_matching_sentences_and_cites_them():
    passage = "Parking costs nothing. A lease is renewed for six seconds while the tool runs. Nobody reads this."

    answer = respond(request(QUESTION, found(("tools.md", passage), ("other.md", "Bananas are yellow."))))

    assert "A lease is renewed for six seconds" in answer.text
    assert [citation.document for citation in answer.citations] == ["tools.md"]
    assert "Bananas" not in answer.text
    assert answer.text.endswith(LABEL)


def test_it_declines_when_the_passages_do_not_answer():
    answer = respond(request(QUESTION, found(("fruit.md", "Bananas are yellow and apples are red."))))

    assert answer.text == f"The knowledge base does not answer this question. {LABEL}"
    assert answer.citations == ()


def test_a_passage_without_the_questions_rare_word_is_no_answer():
    asked = UserMessage(parts=(TextPart(text="What is the capital of Mongolia?"),))
    text = "The capital expenditures of the year, and other capital."
    result = found(("report.md", text)).model_copy(
        update={"citations": (Citation(document="report.md", quote=text, covered=0.4),)}
    )

    assert respond(request(asked, result)).citations == ()


def test_a_passage_with_the_questions_rare_words_is_an_answer():
    asked = UserMessage(parts=(TextPart(text="What is the new capital city of Mongolia?"),))
    text = "Ulaanbaatar is Mongolia's capital, a young city."
    result = found(("atlas.md", text)).model_copy(
        update={"citations": (Citation(document="atlas.md", quote=text, covered=0.8),)}
    )

    assert [citation.document for citation in respond(request(asked, result)).citations] == ["atlas.md"]


def test_it_reports_a_failed_search():
    result = found(failed=True).model_copy(update={"content": "the knowledge base is away"})

    assert respond(request(QUESTION, result)).text == f"The search failed: the knowledge base is away {LABEL}"


def test_without_a_search_tool_it_admits_that_it_knows_nothing():
    assert "without it I know nothing" in respond(request(QUESTION, tools=())).text


def test_a_quote_is_bounded_and_taken_from_the_passage():
    passage = "Other things.\n\nA lease   is renewed for six seconds.\n\nThen it goes on. " + "lease renewed " * 200

    [citation] = respond(request(QUESTION, found(("long.md", passage)))).citations

    assert len(citation.quote) <= QUOTE_CHARS_MAX
    assert citation.quote in passage


def test_sentences_are_quoted_and_not_the_headings_and_tables_around_them():
    passage = (
        "# How long a lease is renewed\n\nLease renewed for\n\n"
        "A lease is renewed for six seconds\nwhile the tool runs.\n\n"
        "| lease | renewed for |\n|---|---|\n| tool | 6 s |\n\n## Long leases\n"
    )

    [citation] = respond(request(QUESTION, found(("tools.md", passage)))).citations

    assert citation.quote == "A lease is renewed for six seconds\nwhile the tool runs."


def test_a_table_is_quoted_where_the_sentences_say_nothing_of_it():
    passage = "Other things are told here.\n\n| lease | renewed for |\n|---|---|\n| a long one | 6 s |\n"

    [citation] = respond(request(QUESTION, found(("tools.md", passage)))).citations

    assert "| a long one | 6 s |" in citation.quote


def test_the_same_passage_in_two_documents_is_quoted_once():
    passage = "A lease is renewed for six seconds."

    answer = respond(request(QUESTION, found(("one.md", passage), ("two.md", passage))))

    assert [citation.document for citation in answer.citations] == ["one.md"]


def test_it_refuses_what_it_cannot_see():
    asked = UserMessage(parts=(ImagePart(document_id="d1"),))

    with pytest.raises(ModelError, match="cannot see images") as caught:
        respond(request(asked))
    assert not caught.value.retryable


async def test_it_streams_text_then_the_whole_message_with_usage():
    pieces = [piece async for piece in OfflineModel().stream(request(QUESTION, tools=()))]

    *deltas, finished = pieces
    assert isinstance(finished, Finished) and finished.usage is not None
    texts = [delta.text for delta in deltas if isinstance(delta, TextDelta)]
    assert len(texts) == len(deltas)
    assert "".join(texts) == finished.message.text
    assert finished.usage.input > 0 and finished.usage.output > 0


def test_the_name_of_a_document_counts_for_its_sentences():
    asked = UserMessage(parts=(TextPart(text="How long is the Nimbus refund period?"),))
    about = ("Nimbus rules", "The refund period is five working days.")
    beside = ("blog", "The Nimbus office is long. Nimbus writes about a refund.")

    answer = respond(request(asked, found(about, beside)))

    assert answer.citations[0].document == "Nimbus rules"


def test_the_title_of_a_document_counts_for_its_later_passages():
    asked = UserMessage(parts=(TextPart(text="Who is the chairman of the rowing club?"),))
    later = "The sheds of the rowing club are behind the post office."

    assert respond(request(asked, found(("other.md", later)))).citations != ()
    assert respond(request(asked, found(("club.md", "# Rules of the rowing club"), ("club.md", later)))).citations == ()
