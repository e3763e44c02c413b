"""Results of a search for tools, in the words of a provider that defers tools and of one that does not."""

from __future__ import annotations

from unittest.mock import ANY

from wayline.contracts.chat import AssistantMessage, LoadedTools, ToolCall
from wayline.contracts.loaded_tools import LoadingMessage
from wayline.contracts.tools import TOOL_SEARCH, ToolDefinition
from wayline.llm.anthropic.request import body
from wayline.llm.deferred import loaded_tokens, tokens_beyond_text
from wayline.llm.openai.reply import Reply, events
from wayline.llm.openai.request import body as responses_body
from wayline.llm.openai_chat.request import build_body as chat_body
from wayline.llm.tokens import estimate, estimate_definitions

from .cards import ASK, LOOK, MARKS, calling, card, request, result, user

PAGE = ToolDefinition(name="page", description="Read a page.")
PAGE_LATER = {
    "name": "page",
    "description": "Read a page.",
    "input_schema": {"type": "object", "properties": {}},
    "defer_loading": True,
}
PAGE_CHANGED = PAGE.model_copy(update={"description": "Read two pages."})
DEFERS = {"tool_references": True}


def loading(call: str, *tools: ToolDefinition) -> LoadingMessage:
    """A search's result that loads tools, and names another one."""
    text = "\n\n".join(f"{tool.name}: {tool.description}" for tool in tools)
    loaded = LoadedTools(names=tuple(tool.name for tool in tools), beside="web fits too.")
    return LoadingMessage(
        call=call, tool=TOOL_SEARCH, content=f"{text}\n\nweb fits too.", loaded=loaded, definitions=tools
    )


FOUND = loading("1", PAGE)
HISTORY = (user("hi"), calling("a", "b"), FOUND, result("2", "cat"))


def asked(*history, tools=(LOOK,), **more) -> dict:
    return body(request(*history, model=card(**{**DEFERS, **more}), tools=tools))


def test_a_found_tool_is_a_reference_with_words_behind_the_results():
    sent = asked(*HISTORY)

    assert sent["tools"][1:] == [PAGE_LATER]
    assert sent["messages"][-1]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "tool_reference", "tool_name": "page"}]},
        {"type": "tool_result", "tool_use_id": "b", "content": "cat"},
        {"type": "text", "text": "web fits too."},
    ]


def test_what_was_sent_before_a_search_stays():
    before, after = asked(*HISTORY[:1]), asked(*HISTORY)

    assert after["tools"][: len(before["tools"])] == before["tools"]
    assert (after["system"], after["messages"][:1]) == (before["system"], before["messages"])


def test_no_deferred_tool_bears_a_marker():
    history = request(*HISTORY, model=card(**DEFERS, cache=MARKS), tools=(LOOK,), system="")

    marked = [tool["name"] for tool in body(history)["tools"] if "cache_control" in tool]

    assert marked == ["look"]


def test_only_tools_that_a_result_refers_to_are_deferred():
    assert [tool["name"] for tool in asked(*HISTORY)["tools"]] == ["look", "page"]
    assert [tool["name"] for tool in asked(user("hi"))["tools"]] == ["look"]


def test_a_model_without_references_reads_the_definitions_as_text():
    plain = asked(*HISTORY, tool_references=False)
    # Another version of the agent has the tool in every prompt.
    elsewhere = asked(*HISTORY, tools=(LOOK, PAGE))

    assert [[tool["name"] for tool in sent["tools"]] for sent in (plain, elsewhere)] == [["look"], ["look", "page"]]
    for sent in (plain, elsewhere):
        assert sent["messages"][-1]["content"][0]["content"] == FOUND.content
        assert len(sent["messages"][-1]["content"]) == 2


def test_a_result_keeps_its_form_whatever_is_found_later():
    text = result("1", "ask: Ask.", loaded=LoadedTools(names=("ask",)))
    history = (user("hi"), calling("a"), text, calling("b"), loading("1", PAGE))

    before = asked(*history)
    after = asked(*history, calling("c"), loading("1", ASK), calling("d"), loading("1", PAGE_CHANGED))

    assert after["messages"][: len(before["messages"])] == before["messages"]
    assert [tool["name"] for tool in after["tools"]] == ["look", "page", "ask"]
    assert after["tools"][1] == PAGE_LATER
    # A request has no second definition of a name.
    assert after["messages"][-1]["content"][0]["content"] == "page: Read two pages.\n\nweb fits too."


def test_the_tokens_of_found_definitions_are_counted_once():
    huge = PAGE.model_copy(update={"input_schema": {"type": "object", "description": "how " * 1_000}})
    history = (*HISTORY, calling("c"), loading("1", huge.model_copy(update={"name": "book"})))
    tokens = loaded_tokens(request(*history, model=card(**DEFERS), tools=(LOOK,)))

    assert tokens == estimate_definitions([huge]) - estimate(history[-1].content) + tokens_beyond_text(FOUND)
    assert loaded_tokens(request(*history, model=card(), tools=(LOOK,))) == 0


def test_other_providers_are_sent_text_and_their_tools_alone():
    openai = request(*HISTORY, model=card(provider="openai", **DEFERS), tools=(LOOK,))

    responses, (chat, _) = responses_body(openai), chat_body(openai)

    assert [tool["name"] for tool in responses["tools"]] == ["look"]
    assert [tool["function"]["name"] for tool in chat["tools"]] == ["look"]
    assert FOUND.content in [item.get("output") for item in responses["input"]]
    assert FOUND.content in [message.get("content") for message in chat["messages"]]


FIND = ToolDefinition(name=TOOL_SEARCH, description="Find tools.", input_schema={"type": "object"})
SEARCHED = AssistantMessage(
    tool_calls=(
        ToolCall(call="1", tool=TOOL_SEARCH, arguments={"query": "pages"}, provider_id="a"),
        ToolCall(call="2", tool="look", arguments={"at": 2}, provider_id="b"),
    )
)
PAGE_FUNCTION = {
    "type": "function",
    "name": "page",
    "description": "Read a page.",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}


def searching(*history, tools=(LOOK, FIND), **more) -> dict:
    model = card(provider="openai", **{**DEFERS, **more})
    return responses_body(request(*history, model=model, tools=tools))


def test_on_responses_a_search_is_an_item_and_brings_functions():
    sent = searching(user("hi"), SEARCHED, FOUND, result("2", "cat"))

    assert sent["tools"] == [
        {**PAGE_FUNCTION, "name": "look", "description": LOOK.description, "parameters": ANY},
        {"type": "tool_search", "execution": "client", "description": "Find tools.", "parameters": ANY},
    ]
    assert sent["input"][1:] == [
        {"type": "tool_search_call", "call_id": ANY, "execution": "client", "arguments": {"query": "pages"}},
        {"type": "function_call", "call_id": "b", "name": "look", "arguments": ANY},
        {
            "type": "tool_search_output",
            "call_id": sent["input"][1]["call_id"],
            "execution": "client",
            "status": "completed",
            "tools": [{**PAGE_FUNCTION, "defer_loading": True}],
        },
        {"type": "function_call_output", "call_id": "b", "output": "cat"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "web fits too."}]},
    ]


def test_on_responses_a_search_that_found_nothing_says_so_beside():
    nothing = result("1", "None of 40 tools fits.")

    sent = searching(user("hi"), SEARCHED, nothing, result("2", "cat"))["input"]

    assert sent[3]["tools"] == []
    assert sent[5]["content"] == [{"type": "input_text", "text": "None of 40 tools fits."}]


def test_on_responses_what_was_sent_before_a_search_stays():
    before, after = searching(user("hi")), searching(user("hi"), SEARCHED, FOUND, result("2", "cat"))

    assert after["tools"] == before["tools"]
    assert after["input"][: len(before["input"])] == before["input"]


def test_on_responses_without_the_search_its_calls_are_of_a_function():
    for sent in (
        searching(user("hi"), SEARCHED, FOUND, result("2", "cat"), tools=(LOOK,)),
        searching(user("hi"), SEARCHED, FOUND, result("2", "cat"), tool_references=False),
    ):
        assert [item.get("type") for item in sent["input"]][1:] == ["function_call"] * 2 + ["function_call_output"] * 2
        assert sent["input"][3]["output"] == FOUND.content


def test_a_search_item_is_a_call_and_written_the_same():
    item = {"type": "tool_search_call", "call_id": "call_7", "execution": "client", "arguments": {"query": "pages"}}
    reply = Reply(provider="openai", model="m")
    for event in events({"status": "completed", "output": [{**item, "id": "tsc_1", "status": "completed"}]}):
        reply.take(event)

    message = reply.finished().message

    [call] = message.tool_calls
    assert (call.tool, call.arguments, call.provider_id) == (TOOL_SEARCH, {"query": "pages"}, "call_7")
    assert message.verbatim is None
    assert searching(user("hi"), message)["input"][1] == item
