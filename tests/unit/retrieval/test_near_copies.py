"""Texts that share most of their words have near signatures and a key in common; others have neither."""

from __future__ import annotations

import random

import pytest

from wayline.retrieval.documents.near_copies import SAME_MIN, bands_of, share_of, signature_of


def text_of(seed: int, words: int) -> list[str]:
    chance = random.Random(seed)
    return [f"word{chance.randrange(5_000)}" for _ in range(words)]


def signed(words: list[str]) -> bytes:
    signature = signature_of([" ".join(words)])
    assert signature is not None
    return signature


@pytest.mark.parametrize("seed", range(20))
def test_a_copy_with_few_changes_meets_its_origin(seed: int):
    origin = text_of(seed, 600)
    changed = [*origin]
    for at in random.Random(-seed - 1).sample(range(600), 6):
        changed[at] = "changed"
    one, other, foreign = signed(origin), signed(changed), signed(text_of(seed + 1_000, 600))

    # Six of 600 words stand in at most thirty of 596 groups of five: they share at least .904 of all.
    assert share_of(one, other) >= SAME_MIN and set(bands_of(one)) & set(bands_of(other))
    assert share_of(one, foreign) < 0.1 and not set(bands_of(one)) & set(bands_of(foreign))


def test_the_estimated_share_is_near_the_true_one():
    for kept in (100, 300, 500):
        one, other = text_of(1, 600), text_of(1, 600)[:kept] + text_of(2, 600 - kept)
        true = (kept - 4) / (2 * 596 - (kept - 4))
        assert share_of(signed(one), signed(other)) == pytest.approx(true, abs=0.16)


def test_pieces_case_and_signs_make_no_difference():
    words = text_of(3, 60)
    assert signature_of([" ".join(words[:30]), " ".join(words[30:])]) == signature_of([", ".join(words).upper()])
    assert signature_of(["退款需要十四天之后不再接受任何申请"]) is not None
    assert signature_of(["one two three"]) is None and signature_of([]) is None


@pytest.mark.slow
def test_of_a_long_text_the_beginning_counts():
    words = [f"w{n}" for n in range(200_000)]
    assert signed(words) == signed([*words, *(f"more{n}" for n in range(500_000))])
