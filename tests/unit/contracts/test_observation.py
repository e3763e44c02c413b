"""What a tool call came to is said in one line, derived from its arguments and its result."""

import json

import pytest

from wayline.contracts.framed_words import framed
from wayline.contracts.observation import OBSERVATION_CHARS_MAX, joined, observation, tool_state

PASSAGES = "[1] ledger.md\nA row is kept.\n\n[2] lease.md\nA lease is renewed."
FETCHED = {
    "fetched": 1,
    "failed": 1,
    "results": [
        {"url": "a", "title": "A", "content": "Hello."},
        {"url": "b", "error": {"code": "bad_status", "message": "404; there is no such page"}},
    ],
}


@pytest.mark.parametrize(
    ("tool", "arguments", "content", "line"),
    [
        ("search_knowledge", {"query": "lease"}, PASSAGES, "2 found for “lease”"),
        ("search_knowledge", {"query": "lease"}, "No passage was found.", "0 found for “lease”"),
        ("brave__web_search", {"query": "tides"}, json.dumps({"results": [{}, {}, {}]}), "3 found for “tides”"),
        ("fetch", {"url": "https://a"}, "<p>hello</p>", "1 fetched"),
        ("crawl", {"urls": ["a", "b", "c"]}, json.dumps([{"url": "a"}, {"error": "404"}]), "1 fetched, 2 failed"),
        ("crawl", {"urls": ["a", "a", "b"]}, json.dumps([{"url": "a"}, {"url": "b"}]), "2 fetched, 0 failed"),
        ("crawl", {"urls": ["a", "a"]}, "<p>hello</p>", "1 fetched"),
        ("web_fetch", {"urls": ["a", "a", "b"]}, json.dumps(FETCHED), "1 fetched, 1 failed"),
        ("web_fetch", {"urls": ["a", "a"]}, json.dumps(FETCHED | {"failed": 0}), "1 fetched, 0 failed"),
        ("search_memories", {"query": "x"}, json.dumps({"memories": [1, 2], "total": 9}), "2 of 9 matched"),
        ("save_memory", {"text": "x"}, json.dumps({"saved": 3}), "3 saved"),
        ("save_memory", {"text": "x"}, "Saved.", "1 saved"),
        ("get_current_time", {}, "2026-01-01T00:00:00+00:00", "get_current_time: 25 bytes"),
        ("list_rows", {}, "x" * 3_000, "list_rows: 2.9 KiB"),
        ("find_order", {"text": "a" * 300}, "[1]", f"1 found for “{'a' * 79}…”"),
        ("search", {}, "something that counts nothing", "search: 29 bytes"),
        ("search", {"query": "a"}, "{broken", "search: 7 bytes"),
        ("search", {"query": "two\nlines"}, "[]", "0 found for “two lines”"),
    ],
)
def test_a_result_is_said_in_one_line(tool, arguments, content, line):
    assert observation(tool, arguments, content, failed=False) == line


def test_a_failure_is_said_with_its_cause():
    assert observation("pay", {}, "no money left\n  at line 3", failed=True) == "pay failed: no money left"
    assert observation("pay", None, "", failed=True) == "pay failed: no reason was given"


def test_a_line_is_never_too_long():
    long = observation("pay", {}, "x" * 1_000, failed=True)

    assert len(long) == len(joined([long, long])) == OBSERVATION_CHARS_MAX


@pytest.mark.parametrize(
    ("tool", "state"),
    [
        ("web_search", "searching_web"),
        ("webSearch", "searching_web"),
        ("web__search_knowledge", "executing_tools"),
        ("fetch_url", "fetching_content"),
        ("read_page", "fetching_content"),
        ("search_memories", "retrieving_memory"),
        ("remember", "saving_memory"),
        ("save_memory", "saving_memory"),
        ("get_current_time", "executing_tools"),
    ],
)
def test_a_tools_name_says_what_it_is_for(tool, state):
    assert tool_state(tool) == state


@pytest.mark.parametrize(
    ("tool", "content", "failed"),
    [
        ("web_search", json.dumps({"results": [{}, {}, {}]}), False),
        ("web_fetch", json.dumps(FETCHED), False),
        ("search_knowledge", PASSAGES, False),
        ("web_fetch", "404; there is no such page", True),
        ("shop__order", "done", False),
    ],
)
def test_words_of_strangers_are_observed_without_their_frame(tool: str, content: str, failed: bool):
    bare = observation(tool, {}, content, failed=failed)

    assert observation(tool, {}, framed(tool, content), failed=failed) == bare
    assert "strangers" not in bare
