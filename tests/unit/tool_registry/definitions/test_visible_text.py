"""Characters that cannot be seen are written as escapes."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable

import pytest

from wayline.tool_registry.definitions.visible_text import one_line, visible, without_hidden


@pytest.mark.parametrize("text", ["Pay a bill.", "größer „als“ 価格 ✓ 🙂", "two\nlines\tand a tab"])
def test_text_that_can_be_seen_stays(text: str):
    assert visible(text) == text


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("\x1b[2K", "\\u001b[2K"),
        ("\r", "\\u000d"),
        ("\x7f", "\\u007f"),
        ("\x9b31m", "\\u009b31m"),
        ("\u202e", "\\u202e"),
        ("\u2066", "\\u2066"),
        ("\u200b", "\\u200b"),
        ("\u200d", "\\u200d"),
        ("\ufeff", "\\ufeff"),
        ("\u00ad", "\\u00ad"),
        ("\u00a0", "\\u00a0"),
        ("\u2028", "\\u2028"),
        ("\ufe0f", "\\ufe0f"),
        ("\u3164", "\\u3164"),
        ("\U000e0041", "\\udb40\\udc41"),
        ("\U000e0100", "\\udb40\\udd00"),
    ],
)
def test_a_hidden_character_is_shown_as_json_escapes(hidden: str, shown: str):
    assert visible(f"a{hidden}b") == f"a{shown}b"


def test_an_escaped_json_text_reads_back_as_it_was():
    definition = {"description": "Pay.\u202e\x1b[0m\U000e0041 ✓ \\u202e"}

    assert json.loads(visible(json.dumps(definition, ensure_ascii=False))) == definition


@pytest.mark.parametrize("read", [visible, without_hidden])
def test_a_text_of_all_characters_leaves_little_behind(read: Callable[[str], str]):
    text = "".join(map(chr, range(0x20000, 0x20000 + 100_000)))
    tracemalloc.start()
    try:
        read(text)
        left_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert left_bytes < 6_000_000


@pytest.mark.parametrize(
    ("text", "line"),
    [("two\nlines\u00a0and\t\u200bmore", "two lines and m"), ("\u200b" * 240 + "later", ""), ("", "")],
)
def test_a_line_is_the_beginning_of_a_text(text: str, line: str):
    assert one_line(text, at_most=15) == line
