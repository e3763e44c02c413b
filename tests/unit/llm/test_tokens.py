"""The most tokens that a text can turn out to have."""

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.llm.tokens import BYTES_PER_TOKEN, DENSEST, WIRE_TOKENS_MAX, estimate, most, width


@given(estimated=st.integers(0, 10**12), pieces=st.integers(0, 10_000))
def test_the_bound_rounds_up_and_adds_wire_tokens_per_piece(estimated, pieces):
    assert most(estimated, pieces=pieces) == ceil(estimated * DENSEST) + pieces * WIRE_TOKENS_MAX


@pytest.mark.parametrize(
    "text",
    ["7" * 999, "[[1,2],[3,4]]" * 99, "\U0001f9ff" * 99, "\u0f04\u1bc9" * 99, "\t\t{}" * 99, "\x01" * 99],
    ids=["digits", "numbers", "emoji", "rare letters", "signs", "control"],
)
def test_the_token_bound_holds_for_signs_digits_and_rare_letters(text: str):
    # Whatever the encoding of a provider is, a token has at least one byte.
    assert most(estimate(text), pieces=0) >= len(text.encode())


def test_words_are_estimated_by_bytes_and_bounded():
    assert estimate("lease renewed " * 100) == 350
    assert most(estimate("lease renewed " * 300), pieces=0) == 2_800


@pytest.mark.parametrize(
    "text",
    ["任务已经完成请稍后再试" * 50, "この仕事は終わりました" * 50, "작업이완료되었습니다" * 50],
    ids=["Chinese", "Japanese", "Korean"],
)
def test_dense_scripts_are_about_half_a_character_per_token(text: str):
    assert 0.5 <= len(text) / estimate(text) <= 0.7
    assert 0.5 <= len(text) / (width(text.encode()) / BYTES_PER_TOKEN) <= 0.7
    assert most(estimate(text), pieces=0) >= len(text.encode())


def test_words_without_dense_characters_keep_their_width():
    assert width("Zürich, naïve café".encode()) == len("Zürich, naïve café".encode())
