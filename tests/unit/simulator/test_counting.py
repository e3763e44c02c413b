"""Tokens are counted by content, not by how a wire format writes it."""

from wayline.simulator import BLOCK_TOKENS, block_tokens
from wayline.simulator.prompt import blocks


def test_a_block_costs_overhead_plus_a_token_per_four_bytes():
    assert [block_tokens("x" * n) - BLOCK_TOKENS for n in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert block_tokens("éé") == BLOCK_TOKENS + 1


def test_argument_spacing_changes_a_calls_content_and_not_its_tokens():
    tight, loose = blocks.call("c1", "search", '{"q":"x","n":1}'), blocks.call("c1", "search", '{ "q": "x", "n": 1 }')

    assert tight.tokens == loose.tokens
    assert tight.payload != loose.payload


def test_a_mark_is_no_content():
    block = blocks.text("system", "system", "Be brief.")

    assert block.kept("1h").payload == block.payload
