"""Characters that cannot be seen are written as escapes."""

from __future__ import annotations

import json

import pytest

from wayline.tool_registry.tools.visible_text import visible


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
