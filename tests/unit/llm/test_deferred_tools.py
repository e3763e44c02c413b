"""Results of a search for tools, in the words of a provider that defers tools and of one that does not."""

from __future__ import annotations

from wayline.contracts.chat import LoadedTools
from wayline.contracts.tools import ToolDefinition
from wayline.llm.anthropic.request import body
from wayline.llm.openai.request import body as responses_body
from wayline.llm.openai_chat.request import build_body as chat_body

from .cards import ASK, LOOK, MARKS, calling, card, request, result, user

PAGE = ToolDefinition(name="page", description="Read a page.")
PAGE_LATER = {
    "name": "page",
    "description": "Read a page.",
    "input_schema": {"type": "object", "properties": {}},
    "defer_loading": True,
}
FOUND = result("1", "page: Read a page.\n\nweb fits too.", loaded=LoadedTools(names=("page",), beside="web fits too."))
HISTORY = (user("hi"), calling("a", "b"), FOUND, result("2", "cat"))
DEFERS = {"tool_references": True}


def asked(*history, deferred=(PAGE,), **more) -> dict:
    return body(request(*history, model=card(**{**DEFERS, **more}), tools=(LOOK,), deferred=deferred))


def test_a_found_tool_is_a_reference_with_words_behind_the_results():
    sent = asked(*HISTORY)

    assert sent["tools"][1:] == [PAGE_LATER]
    assert sent["messages"][-1]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "tool_reference", "tool_name": "page"}]},
        {"type": "tool_result", "tool_use_id": "b", "content": "cat"},
        {"type": "text", "text": "web fits too."},
    ]


def test_what_was_sent_before_a_search_stays():
    before, after = asked(*HISTORY[:1], deferred=()), asked(*HISTORY)

    assert after["tools"][: len(before["tools"])] == before["tools"]
    assert (after["system"], after["messages"][:1]) == (before["system"], before["messages"])


def test_no_deferred_tool_bears_a_marker():
    history = request(*HISTORY, model=card(**DEFERS, cache=MARKS), tools=(LOOK,), deferred=(PAGE,), system="")

    marked = [tool["name"] for tool in body(history)["tools"] if "cache_control" in tool]

    assert marked == ["look"]


def test_only_tools_that_a_result_refers_to_are_deferred():
    assert [tool["name"] for tool in asked(*HISTORY, deferred=(ASK, PAGE))["tools"]] == ["look", "page"]
    assert [tool["name"] for tool in asked(user("hi"))["tools"]] == ["look"]


def test_a_model_without_references_reads_the_definitions_as_text():
    plain = asked(*HISTORY, tool_references=False)
    # Another agent goes on with the history, and does not have the tool.
    elsewhere = asked(*HISTORY, deferred=())

    for sent in (plain, elsewhere):
        assert [tool["name"] for tool in sent["tools"]] == ["look"]
        assert sent["messages"][-1]["content"][0]["content"] == FOUND.content
        assert len(sent["messages"][-1]["content"]) == 2


def test_other_providers_are_sent_text_and_their_tools_alone():
    openai = request(*HISTORY, model=card(provider="openai", **DEFERS), tools=(LOOK,), deferred=(PAGE,))

    responses, (chat, _) = responses_body(openai), chat_body(openai)

    assert [tool["name"] for tool in responses["tools"]] == ["look"]
    assert [tool["function"]["name"] for tool in chat["tools"]] == ["look"]
    assert FOUND.content in [item.get("output") for item in responses["input"]]
    assert FOUND.content in [message.get("content") for message in chat["messages"]]
