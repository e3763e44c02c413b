"""How hard a task looks from its text alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.contracts.jobs import Complexity
from wayline.router.complexity import assess, bundled
from wayline.router.complexity.features import (
    READ_MAX_CHARS,
    any_of,
    count,
    excerpt,
    gram_sum,
    grams,
    lexicon,
    words_of,
)

HARD = (
    "Prove by induction that the sum of the first n odd numbers is n squared, and verify the argument for n below 5. "
    "If the base case is left out, why does the proof fail?"
)


def test_a_greeting_is_simple_and_a_proof_is_complex_and_needs_reasoning():
    greeting, proof = assess("Hello, are you there?"), assess(HARD)

    assert (greeting.level, greeting.needs_reasoning) == ("simple", False)
    assert (proof.level, proof.needs_reasoning) == ("complex", True)


@pytest.mark.parametrize(
    "text",
    [
        "Prove that there is no largest prime, and say where the contradiction is.",
        "Derive the variance of a sum of two dependent variables from the definition, step by step.",
        "Two of these statements contradict each other; if only one entry is wrong, which one must it be?",
        "Find the root cause: the queue deadlocks under load, but only after the second retry, and not in tests.",
        "Why does this fail? The second call returns an empty array although the first one filled it.",
        "What is the time complexity of this algorithm in the worst case, and can it be made better than that?",
    ],
)
def test_each_sign_of_reasoning_counts_once_the_score_is_high_enough(text):
    assert assess(text).needs_reasoning


def test_a_sign_of_reasoning_in_an_easy_task_is_no_reasoning():
    easy = assess("Translate 'proof' please.")

    assert easy == Complexity(score=easy.score, level="simple", needs_reasoning=False)


def test_a_sign_is_a_word_and_not_the_middle_of_another():
    signs = any_of(["prove", "o(n"])

    assert signs.search("please Prove it") and signs.search("in O(n log n)")
    assert not signs.search("improve it")


def test_levels_begin_where_the_data_says():
    lenient = bundled().adjusted(levels={"moderate": 0.0, "complex": 0.01}, reasoning_min=0.0, weights=None)

    assert lenient.assess("Hello").level == "complex"


def test_a_weight_of_nothing_takes_a_feature_away():
    nothing = bundled().adjusted(levels=None, reasoning_min=None, weights=dict.fromkeys(bundled().weights, 0.0))

    assert nothing.assess("Hello").score == nothing.assess(HARD).score


def test_of_a_long_text_the_beginning_and_the_end_are_read():
    long = "begin " + "x" * 1_000_000 + " end"

    assert len(excerpt(long)) <= READ_MAX_CHARS + 1
    assert excerpt(long).startswith("begin") and excerpt(long).endswith("end")


def test_numbers_are_one_word_and_c_plus_plus_is_another():
    assert words_of("Pay 1,200.50 in C++ or C#, don't wait") == ["pay", "#", "in", "c++", "or", "c#", "don't", "wait"]


def test_features_are_logarithms_of_counts():
    found = count("not now, not then", ["not", "now", "not", "then"], lexicon({"negation": "not no"}), {})

    assert found["negation"] == pytest.approx(1.0986, abs=1e-4)
    assert "condition" not in found


def test_hashed_words_of_a_text_twice_as_long_weigh_the_same():
    weights = [1] * 16

    assert gram_sum(set(), weights) == 0
    assert gram_sum(grams(["a"], 4), weights) < gram_sum(grams(["a", "b"], 4), weights)


@given(st.text(max_size=3_000))
def test_any_text_has_a_score_and_the_same_one_again(text):
    seen = assess(text)

    assert 0 <= seen.score <= 1
    assert seen == assess(text)
