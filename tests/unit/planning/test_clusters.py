"""Alike texts are grouped, the same way each time, and tasks are read from lists."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wayline.planning import TASKS_MAX, Passage, cluster_by_similarity, label, read_tasks, word_vectors

TEXTS = [
    "Bake the wedding cake",
    "Book the wedding cake baker",
    "Order a cake stand",
    "Rent the sound system",
    "Test the sound system of the hall",
]


def test_texts_that_share_rare_words_are_together():
    assert cluster_by_similarity(word_vectors(TEXTS), similarity_min=0.1) == [[0, 1, 2], [3, 4]]


def test_a_group_is_called_by_the_words_that_it_shares():
    assert label(TEXTS[3:], of=TEXTS) == "sound system"


def test_a_group_without_a_shared_word_has_a_name():
    assert label(["Sing", "Dance"]) == "dance sing"


def brute(vectors, similarity_min):
    """Merge the two groups that are most alike until no two are enough."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    similar, groups = unit @ unit.T, [[at] for at in range(len(vectors))]
    while len(groups) > 1:
        pairs = [(similar[np.ix_(a, b)].mean(), a, b) for n, a in enumerate(groups) for b in groups[n + 1 :]]
        best, a, b = max(pairs, key=lambda pair: pair[0])
        if best < similarity_min:
            break
        groups = [one for one in groups if one not in (a, b)] + [sorted(a + b)]
    return sorted(groups)


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 12), st.floats(-0.5, 0.9))
def test_groups_are_those_of_average_linkage(seed, number, similarity_min):
    vectors = np.random.default_rng(seed).normal(size=(number, 3))

    found = cluster_by_similarity(vectors, similarity_min=similarity_min)

    assert found == brute(vectors, similarity_min) == cluster_by_similarity(vectors, similarity_min=similarity_min)


@pytest.mark.parametrize("rows", [np.zeros((4, 3)), np.full((3, 2), np.nan), [[], []], []])
def test_rows_that_say_nothing_stand_alone(rows):
    assert cluster_by_similarity(rows) == [[at] for at in range(len(rows))]


def test_a_thousand_equal_rows_are_one_group_and_more_are_refused():
    assert len(cluster_by_similarity(np.ones((TASKS_MAX, 8)))) == 1
    with pytest.raises(ValueError, match="1001"):
        cluster_by_similarity(np.ones((TASKS_MAX + 1, 8)))


def test_tasks_are_read_from_numbers_bullets_boxes_and_ids():
    text = """# Plan
    Some words before.
1. Dig a hole. After it rained.
2) **Plant** the tree
- [ ] Water it
* T7: Feed it (after 2)
- no
T8. Dig a hole
"""
    found = read_tasks([Passage("p", text), Passage("q", "- Water it\n- " + "x" * 9_000)])

    assert [(one.id, one.name) for one in found[:4]] == [
        ("1", "Dig a hole"),
        ("2", "Plant the tree"),
        ("3", "Water it"),
        ("T7", "Feed it"),
    ]
    assert found[0].text == "Dig a hole. After it rained."
    assert len(found) == 5 and len(found[4].name) <= 300
