"""Fenced blocks in answers and results are cards of their own: code in colours, differences, and each as a file."""

from __future__ import annotations

import re
from html import unescape
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from wayline.console.render.code_words import COLOURED_MAX_CHARS, coloured
from wayline.console.render.environment import Templates
from wayline.console.render.fenced_text import Block, Prose, block_of, markdown_parts, plain_parts

DIFF = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n"
TEXT = f"**First** see [it].\n\n```python\ndef f():\n    return 1\n```\nthen\n\n```diff\n{DIFF}```\n\n[it]: https://a.example\n"
LANGUAGES = ("python", "json", "sh", "sql", "ts", "yaml", "")
SLOW = ("\n  ", "a.", '"', "/*", "'''", "\\", "{", "`", "1", "#", "--")
"""What takes other readers of code the longer, the more of it there is."""


def test_blocks_stand_by_themselves_between_prose():
    first, code, then, diff = markdown_parts(TEXT)

    assert isinstance(first, Prose) and "<strong>First</strong>" in first.html and "https://a.example" in first.html
    assert isinstance(code, Block) and (code.language, code.text) == ("python", "def f():\n    return 1\n")
    assert code.file == "1.py" and then == Prose(Markup("<p>then</p>\n"))
    assert isinstance(diff, Block) and diff.diff is not None and (diff.diff.added, diff.file) == (1, "2.patch")


def test_what_calls_itself_a_diff_and_is_none_is_code():
    (block,) = markdown_parts("```diff\n-a\n+b\n```")

    assert isinstance(block, Block) and block.diff is None and block.shown == "-a\n+b\n"


def test_a_result_without_fences_is_left_as_it_is():
    assert plain_parts("two\nlines") == [] and plain_parts({"a": 1}) == []


def test_around_the_blocks_of_a_result_nothing_is_rendered():
    parts = plain_parts("# one\r\n<b>\r\n```js\nlet a\n```\n*end*")

    assert parts == [Prose(text="# one\n<b>"), Block(1, "let a\n", "js"), Prose(text="*end*")]


def test_a_block_is_a_file_with_the_characters_that_were_hidden():
    found = block_of("```\nu\u202ev\n```\n\n```sh\nls\n```", 1)

    assert found is not None and found.text == "u\u202ev\n" and "\u202e" not in found.shown
    assert block_of("```\na\n```", 2) is None


def test_of_a_long_block_the_first_lines_are_shown():
    block = Block(1, "x = 1\n" * 1_000, "python")

    assert block.shown.count("\n") == 400 and not block.is_whole
    card = Templates()._environment.globals["fenced"].markdown([block], "/jobs/j/answer")  # pyright: ignore
    assert "data-copy" not in card and 'href="/jobs/j/answer/code/1"' in card and "<details open" not in card


@given(st.text("\"'`#/*-\\\n a1.{", max_size=60), st.sampled_from(LANGUAGES))
@settings(max_examples=60)
def test_colours_change_no_character(code: str, language: str):
    assert unescape(re.sub(r"</?span[^>]*>", "", coloured(code, language))) == code


@pytest.mark.parametrize("language", LANGUAGES)
def test_colours_take_time_in_proportion_to_the_code(language: str):
    # The ratio of processor time to that of plain words: it would be hundreds for what is read again and again.
    def took(piece: str) -> float:
        began = process_time()
        coloured((piece * COLOURED_MAX_CHARS)[:COLOURED_MAX_CHARS], language)
        return process_time() - began

    plain = max(min(took("a b ") for _ in range(3)), 0.002)
    assert {piece for piece in SLOW if min(took(piece) for _ in range(2)) > 20 * plain} == set()
