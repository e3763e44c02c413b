"""How hard a task looks from its text alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wayline.contracts.jobs import Complexity
from wayline.routing.complexity import assess, bundled
from wayline.routing.complexity.features import (
    READ_MAX_CHARS,
    count,
    excerpt,
    gram_sum,
    grams,
    lexicon,
    words_of,
)
from wayline.routing.complexity.phrases import Phrases
from wayline.testkit.walks import examples

HARD = (
    "Prove by induction that the sum of the first n odd numbers is n squared, and verify the argument for n below 5. "
    "If the base case is left out, why does the proof fail?"
)


def test_a_greeting_is_simple_and_a_proof_needs_reasoning():
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

    assert easy == Complexity(score=easy.score, content=easy.content, level="simple", needs_reasoning=False)


def test_a_sign_is_a_word_and_not_the_middle_of_another():
    signs = Phrases.of({"proof": ["prove", "o(n"]})

    assert signs.count("please prove it in o(n log n)") == {"proof": 2}
    assert signs.count("improve it") == {}


def test_a_phrase_that_begins_or_overlaps_another_counts_for_both():
    several = Phrases.of({"steps": ["step by step", "and then", "then "], "design": ["step by step plan", "plan"]})

    assert several.count("a step by step plan, and then another") == {"steps": 2, "design": 1}
    assert several.count("a step by step guide, then a plan") == {"steps": 2, "design": 1}


BLAND = (
    "You are a helpful assistant for our company. Please read the following message carefully and answer it "
    "politely and in complete sentences. Use a friendly tone, keep to the point, and do not include anything "
    "that is not needed for the answer.",
    "Below is what somebody wrote to our office this morning. Have a look at it, think about what they would "
    "like to know, and give a kind and honest reply in the same language. There is no hurry, and a short reply"
    " is fine.",
    "As a member of the support staff you handle incoming mail. Every message gets a courteous reply in plain "
    "words. There is no hurry, and nobody expects more than a good and honest answer to what was written by "
    "the sender below.",
)
PLAIN = (
    "how would you say fly in italian",
    "what is my balance",
    "set an alarm for seven tomorrow",
    "Can you book a table for four at a restaurant near the station on Friday evening?",
    "I need some fun learning activities for my 5-year-old son.",
    "When did Caroline go to the support group?",
    "My order has not arrived, and the tracking page shows nothing. Where is it?",
    "Write a Python function that returns the second largest number of a list.",
    "Which of these is a vegetable: apple, carrot, cherry?",
    "Find the area of a triangle with a base of 10 units and height of 5 units.",
)
DEMANDING = (
    HARD,
    "Prove that there is no largest prime, and say where the contradiction is.",
    "Review this contract clause by clause: which liability and indemnity terms contradict each other?",
    "Our service deadlocks about once a day under load since we added a second queue. Find the root cause.",
    "Refactor this class so that the retries are idempotent under a crash between the write and the acknowledgement.",
)


@pytest.mark.parametrize("between", ["\n\n", "\n", " "])
@pytest.mark.parametrize("instruction", BLAND)
def test_a_neutral_instruction_before_a_request_moves_no_level(instruction: str, between: str):
    assert len(instruction.split()) >= 40
    for text in (*PLAIN, *DEMANDING):
        alone, behind = assess(text), assess(f"{instruction}{between}{text}")
        assert (behind.level, behind.needs_reasoning) == (alone.level, alone.needs_reasoning), text


def test_plain_requests_are_not_complex_and_demanding_ones_are():
    assert [text for text in PLAIN if assess(text).level == "complex"] == []
    assert [text for text in DEMANDING if assess(text).level != "complex"] == []


def test_length_alone_makes_a_text_moderate():
    story = "A woman bought bread and milk in the small shop near the station, and went home by bus in the rain. " * 12

    assert assess(story).level == "moderate"
    assert assess("A woman bought bread.").level == "simple"


def test_a_direction_full_of_work_is_part_of_what_is_asked():
    asked = "You must prove that the theorem holds. Write it for a general reader."

    assert bundled().asked(asked) == asked
    assert bundled().asked("Answer the question: what is due?") == " what is due?"
    assert bundled().asked("Be brief.") == "Be brief.", "the last sentence is always asked"


def test_levels_begin_at_the_configured_scores():
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
    found = count("not now, not then", ["not", "now", "not", "then"], lexicon({"negation": "not no"}), Phrases.of({}))

    assert found["negation"] == pytest.approx(1.0986, abs=1e-4)
    assert "condition" not in found


def test_hashed_words_of_a_text_twice_as_long_weigh_the_same():
    weights = [1] * 16

    assert gram_sum(set(), weights) == 0
    assert gram_sum(grams(["a"], 4), weights) < gram_sum(grams(["a", "b"], 4), weights)


@settings(deadline=None)
@given(st.text(max_size=3_000))
def test_any_text_has_a_score_and_the_same_one_again(text):
    seen = assess(text)

    assert 0 <= seen.score <= 1
    assert seen == assess(text)


@settings(max_examples=examples(200), deadline=None)
@given(st.text(st.sampled_from("aZ1,.'-+#_ \n\t@"), max_size=60))
def test_ascii_words_are_the_same_beside_other_letters(text: str):
    assert words_of(f"{text} é")[:-1] == words_of(text)


@settings(max_examples=examples(400))
@given(st.text(alphabet="abcZ09'-+#., :\n\u2019", max_size=40))
def test_words_are_those_that_one_search_over_the_text_finds(text: str):
    pattern = re.compile(r"[a-z]+(?:['-][a-z]+)*(?:\+\+|#)?|[0-9][0-9,.]*")
    found = pattern.findall(text.lower().replace("\u2019", "'"))

    assert words_of(text) == ["#" if word[0].isdigit() else word for word in found]
