"""A fact has the words of its conversation behind it, or it was invented."""

from __future__ import annotations

import pytest

from wayline.executor.decide.lexical_support import SAID_CHARS_MAX, WINDOW_WORDS, is_unsaid

SAID = "By the way, I've been working as a nurse in Bonn since we moved, and at the weekend I look after my bees."


@pytest.mark.parametrize("fact", ["The user is a nurse in Bonn.", "Keeps bees at weekends.", "Works as a nurse."])
def test_a_paraphrase_has_its_words_behind_it(fact: str):
    assert not is_unsaid(fact, by_user=[SAID])


@pytest.mark.parametrize("fact", ["Owns a yacht.", "Plays the cello in an orchestra.", "Is allergic to penicillin."])
def test_an_invention_has_none(fact: str):
    assert is_unsaid(fact, by_user=[SAID])


def test_words_far_apart_support_nothing():
    far = f" {'the word ' * WINDOW_WORDS} ".join(("I have a yellow", "bicycle and the", "church of", "Tom"))

    assert is_unsaid("Rides a yellow bicycle to church with Tom", by_user=[far])
    assert not is_unsaid("Rides a yellow bicycle to church with Tom", by_user=["I and Tom have yellow bicycles"])


def test_what_a_tool_answered_supports_a_fact():
    assert not is_unsaid(
        "Customer since 2019 with a gold card", by_user=["what do you know of me?"], by_others=["gold card, since 2019"]
    )


@pytest.mark.parametrize(
    "said", ["Ich arbeite als Krankenpfleger und wohne seit drei Jahren in Bonn", "我在波恩当护士周末养蜜蜂", ""]
)
def test_nothing_is_told_across_languages_or_where_nothing_was_said(said: str):
    assert not is_unsaid("The user is the owner of a yacht", by_user=[said])


def test_nothing_is_told_of_what_is_too_long():
    assert not is_unsaid("Owns a yacht.", by_user=["the word " * (SAID_CHARS_MAX // 8)])


def test_han_is_compared_by_pairs():
    assert not is_unsaid("喜欢养蜜蜂", by_user=["周末我喜欢照顾蜜蜂"])
    assert is_unsaid("拥有一艘游艇", by_user=["周末我喜欢照顾蜜蜂"])
