"""The most tokens that a text can turn out to have."""

from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from wayline.llm.tokens import DENSEST, WIRE_TOKENS_MAX, most


@given(estimated=st.integers(0, 10**12), pieces=st.integers(0, 10_000))
def test_the_densest_text_is_rounded_up_and_each_piece_has_its_wire_format(estimated, pieces):
    assert most(estimated, pieces=pieces) == ceil(estimated * DENSEST) + pieces * WIRE_TOKENS_MAX
