"""What of a long page is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.tool_registry.web.pages.extracts import CHARS_MAX, LEFT_OUT, extract, rank, split, words

FILLER = "The keeper counts the waves and writes the number down. " * 10
PAGE = "\n\n".join(
    [
        "# The harbour",
        *(f"{FILLER}Chapter {n}." for n in range(20)),
        "## Tides",
        "Spring tides come after the full moon and reach five metres.",
        *(f"{FILLER}Chapter {n}." for n in range(20, 40)),
        "The neap tide is lower.",
    ]
)


def test_a_short_page_is_shown_as_it_is():
    assert extract("# A page\n\nwith text", "anything", "brief") == "# A page\n\nwith text"


def test_the_passages_that_fit_the_query_are_shown_in_order():
    shown = extract(PAGE, "How high are spring tides?", "brief")

    assert shown.startswith(LEFT_OUT)
    assert "## Tides\n\nSpring tides come after the full moon" in shown
    assert len(shown) <= CHARS_MAX["brief"] + 200
    assert shown.index("Spring tides") < shown.index("neap tide")


def test_without_a_fitting_passage_the_beginning_is_shown():
    for query in (None, "submarines"):
        shown = extract(PAGE, query, "brief")
        assert shown.startswith("# The harbour")
        assert shown.endswith(LEFT_OUT)
        assert len(shown) <= CHARS_MAX["brief"] + 10


def test_more_detail_shows_more():
    sizes = [len(extract(PAGE, "keeper waves", detail)) for detail in ("brief", "detailed", "full")]

    assert sizes[0] < sizes[1] < sizes[2] == len(PAGE)


def test_rare_words_count_more_than_frequent_ones():
    passages = ["the moon and the sea", "the sea and the sea", "the land"]

    scores = rank(passages, "the moon")

    assert scores[0] > scores[1] >= scores[2] > 0


def test_words_are_compared_without_case_and_plural():
    assert words("Tides, TIDE; glass's 2026") == ["tide", "tide", "glass", "s", "2026"]
    assert words("潮汐表") == ["潮汐", "汐表"]


def test_one_endless_line_is_cut_into_passages():
    assert all(len(passage) <= 1_500 for passage in split("x" * 50_000))


@pytest.mark.parametrize("detail", ["brief", "detailed"])
@given(text=st.text(max_size=300), query=st.text(max_size=20), times=st.integers(1, 60))
def test_whatever_a_page_holds_the_limit_holds(text: str, query: str, times: int, detail):
    shown = extract(f"{text}\n\n" * times, query or None, detail)

    assert len(shown) <= CHARS_MAX[detail] + 200
