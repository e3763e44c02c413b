"""What providers count, in our own terms, and what it costs then."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from wayline.contracts.money import Usage
from wayline.llm.catalogue import bundled
from wayline.llm.prices import cost
from wayline.llm.usage import from_anthropic, from_chat, from_responses, plausible

CARDS = {card.name: card for card in bundled()}


def test_claudes_input_tokens_exclude_cache_reads_and_writes():
    usage = from_anthropic(
        {
            "input_tokens": 50,
            "cache_read_input_tokens": 2_000,
            "cache_creation_input_tokens": 1_000,
            "cache_creation": {"ephemeral_5m_input_tokens": 600, "ephemeral_1h_input_tokens": 400},
            "output_tokens": 7,
            "output_tokens_details": {"thinking_tokens": 3},
        }
    )

    assert usage is not None
    assert usage == Usage(input=3_050, cache_read=2_000, cache_write_5m=600, cache_write_1h=400, output=7, reasoning=3)
    # 50 x 2.00 + 600 x 2.50 + 400 x 4.00 + 2,000 x .10 + 7 x 10.00
    assert cost(CARDS["anthropic/claude-sonnet-5-5"], usage) == Decimal("0.00347")


@pytest.mark.parametrize("sum_said", [{}, {"cache_creation_input_tokens": 0}, {"cache_creation_input_tokens": 300}])
def test_cache_writes_by_ttl_count_over_a_wrong_sum(sum_said: dict[str, int]):
    by_ttl = {"ephemeral_5m_input_tokens": 600, "ephemeral_1h_input_tokens": 400}

    usage = from_anthropic({"input_tokens": 1, "output_tokens": 1, "cache_creation": by_ttl, **sum_said})

    assert usage is not None
    assert (usage.input, usage.cache_write_5m, usage.cache_write_1h) == (1_001, 600, 400)


def test_openais_input_tokens_include_cached_ones():
    details = {"cached_tokens": 200, "cache_write_tokens": 100}
    responses = {"input_tokens": 1_000, "input_tokens_details": details, "output_tokens": 10}
    chat = {"prompt_tokens": 1_000, "prompt_tokens_details": details, "completion_tokens": 10}

    usage = from_responses(responses)

    assert usage is not None
    assert usage == from_chat(chat) == Usage(input=1_000, cache_read=200, cache_write_5m=100, output=10)
    # 700 x .10 + 200 x .01 + 100 x .125 + 10 x .50
    assert cost(CARDS["openai/gpt-6-luna"], usage) == Decimal("0.0000895")


@pytest.mark.parametrize(
    ("counts", "output", "reasoning"),
    [
        ({"completion_tokens": 10, "total_tokens": 210}, 110, 100),
        ({"completion_tokens": 10, "total_tokens": 110}, 10, 0),
        ({"completion_tokens": 10, "total_tokens": 50}, 10, 0),
        ({"completion_tokens": 10}, 10, 0),
        ({"total_tokens": 110}, 10, 10),
        ({"completion_tokens": 10, "completion_tokens_details": {"reasoning_tokens": 4}, "total_tokens": 110}, 10, 4),
    ],
)
def test_what_only_the_sum_counts_is_output_that_was_thought(counts: dict[str, Any], output: int, reasoning: int):
    usage = from_chat({"prompt_tokens": 100, **counts})

    assert usage == Usage(input=100, output=output, reasoning=reasoning)


TOLD = {
    from_chat: {"prompt_tokens": 100, "completion_tokens": 10},
    from_responses: {"input_tokens": 100, "output_tokens": 10},
    from_anthropic: {"input_tokens": 100, "output_tokens": 10},
}


@pytest.mark.parametrize("count", [1e300, 2**40, -5, float("nan"), "12", True, [], {}])
@pytest.mark.parametrize("read", TOLD)
def test_a_usage_with_a_count_that_is_none_is_unknown(read: Any, count: Any):
    for name in TOLD[read]:
        assert read(TOLD[read] | {name: count}) is None


@pytest.mark.parametrize("read", TOLD)
def test_a_usage_that_counts_nothing_is_unknown(read: Any):
    prompt, output = TOLD[read]

    assert read({prompt: 0, output: 0}) is None
    assert read({prompt: None, output: 10}) is None
    assert read({prompt: 100, output: None}) is None
    assert read({}) is None
    assert read([]) is None


@pytest.mark.parametrize("read", TOLD)
def test_missing_details_count_nothing_and_odd_ones_are_unknown(read: Any):
    names = ("prompt_tokens_details", "input_tokens_details", "output_tokens_details", "cache_creation")

    assert read(TOLD[read] | dict.fromkeys(names)) == Usage(input=100, output=10)
    assert read(TOLD[read] | dict.fromkeys(names, "x")) is None


def test_an_answer_that_counts_none_of_its_words_has_no_usage():
    assert plausible(Usage(input=9), wrote=True) is None
    assert plausible(Usage(input=9), wrote=False) == Usage(input=9)


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 500}}, Usage(input=600, cache_read=500, output=10)),
        ({"completion_tokens_details": {"reasoning_tokens": 50}}, Usage(input=100, output=60, reasoning=50)),
        (
            {"prompt_tokens_details": {"cached_tokens": 500}, "total_tokens": 610},
            Usage(input=600, cache_read=500, output=10),
        ),
        ({"prompt_cache_hit_tokens": 60}, Usage(input=100, cache_read=60, output=10)),
        ({"cached_tokens": 60}, Usage(input=100, cache_read=60, output=10)),
    ],
    ids=[
        "more cached than read",
        "more thought than written",
        "more cached than read, and counted in the sum",
        "as DeepSeek names it",
        "as Moonshot does",
    ],
)
def test_a_part_above_its_whole_was_not_counted_in_it(counts: dict[str, Any], usage: Usage):
    assert from_chat({"prompt_tokens": 100, "completion_tokens": 10, **counts}) == usage


def test_tokens_written_to_a_cache_and_read_are_billed_for_both():
    # A recorded exchange: the endpoint billed 7 tokens of input, 2,161 read from the cache and 2,161 written to it.
    details = {"cached_tokens": 2_161, "cache_write_tokens": 2_161}
    chat = {"prompt_tokens": 2_168, "completion_tokens": 100, "total_tokens": 2_268, "prompt_tokens_details": details}
    responses = {"input_tokens": 2_168, "output_tokens": 100, "total_tokens": 2_268, "input_tokens_details": details}

    usage = Usage(input=7 + 2 * 2_161, cache_read=2_161, cache_write_5m=2_161, output=100)
    assert from_chat(chat) == from_responses(responses) == usage
