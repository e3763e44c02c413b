"""Patterns as schemas have them, by an engine without backtracking."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.schemas import UnsupportedPattern, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"^(?=.*[A-Z])(?!.*\s).{3,}$", "abC", True),
        (r"^(?=.*[A-Z])(?!.*\s).{3,}$", "ab C", False),
        (r"^(?=.*[A-Z])(?!.*\s).{3,}$", "abc", False),
        (r"^(?=[^)]\))a", "a)", True),
        (r"^\u00e9\u{1F600}$", "é😀", True),
        (r"^\/api\/v1\_x$", "/api/v1_x", True),
        (r"^\p{Letter}+\p{Script=Greek}$", "aλ", True),
        (r"^\d+$", "\u0663", False),
        (r"a$", "a\n", False),
        (r"\cA", "\x01", True),
        (r"^.$", "\ud83d", True),
        (r"\u005cd", "5", False),
    ],
)
def test_a_pattern_is_read_as_its_language_has_it(pattern: str, text: str, found: bool):
    assert compile_pattern(pattern).found_in(text) is found


@pytest.mark.parametrize("pattern", [r"a(?=b)", r"(a)\1", r"^(?=a)b|c", r"(?<!a)b", "(", "a{2,1}", "^(?=a"])
def test_a_pattern_that_needs_backtracking_is_refused(pattern: str):
    with pytest.raises(UnsupportedPattern):
        compile_pattern(pattern)


PLAIN = st.text("ab.[]^$|()*+?{}1,-\\dw", max_size=12)


@given(PLAIN, st.text("ab1,. ", max_size=8))
def test_what_both_engines_read_they_find_alike(pattern: str, text: str):
    try:
        ours = compile_pattern(pattern)
        theirs = re.compile(pattern, re.ASCII)
    except (UnsupportedPattern, re.error):
        return
    if any(part in pattern for part in ("++", "*+", "?+", "}+", "[[", "--", "{,", "\\1")):
        return  # They are no ECMA-262, and the engines differ.

    assert ours.found_in(text) is bool(theirs.search(text))
