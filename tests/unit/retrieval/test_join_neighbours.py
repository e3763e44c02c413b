"""Passages that stand side by side in a document are one hit, in the order of the text."""

from __future__ import annotations

import random

from wayline.retrieval.search.join_neighbours import JOINED_MAX, Place, join_neighbours, joined_text

TEXT = "One. Two.\n\nThree. Four."


def place(start: int, end: int, *, space: str | None = "", document: str = "d", text: str = TEXT) -> Place:
    return Place(document, text[start:end], start, end, space)


ONE, TWO, THREE = place(0, 4), place(5, 9, space=" "), place(11, 17, space="\n\n")


def test_neighbours_are_one_hit_in_the_order_of_the_text():
    found = [THREE, place(0, 4, document="e"), TWO, ONE]

    runs = join_neighbours(found)

    assert runs == [(3, 2, 0), (1,)]
    assert joined_text([found[at] for at in runs[0]]) == "One. Two.\n\nThree."


def test_what_two_passages_share_is_said_once():
    assert join_neighbours([place(0, 9), place(5, 17, space=" ")]) == [(0, 1)]
    assert joined_text([place(0, 9), place(5, 17, space=" ")]) == TEXT[:17]


def test_passages_with_something_between_them_stay_apart():
    assert join_neighbours([ONE, THREE]) == [(0,), (1,)]
    # What is not known to be white space may be anything.
    assert join_neighbours([ONE, place(5, 9, space=None)]) == [(0,), (1,)]
    unknown = Place("d", "One.", None, None, None)
    elsewhere = Place("d", "Longer than its place.", 5, 9, " ")
    assert join_neighbours([ONE, unknown, elsewhere]) == [(0,), (1,), (2,)]


def test_a_hit_holds_at_most_so_many_passages():
    text = "a" * (JOINED_MAX + 2)
    runs = join_neighbours([place(at, at + 1, text=text) for at in range(len(text))])

    assert [len(run) for run in runs] == [JOINED_MAX, 2]


def test_joined_texts_are_slices_of_the_document_whatever_is_found():
    chance = random.Random(7)
    for _ in range(200):
        words = ["".join(chance.choices("abc", k=chance.randint(1, 5))) for _ in range(20)]
        text, places = "", []
        for word in words:
            space = " " * chance.randint(0, 2)
            start = len(text) + len(space)
            text += space + word
            places.append(Place("d", word, start, len(text), space))
        found = chance.sample(places, k=chance.randint(1, 20))

        runs = join_neighbours(found)

        assert sorted(at for run in runs for at in run) == list(range(len(found)))
        assert [min(run) for run in runs] == sorted(min(run) for run in runs)
        for run in runs:
            parts = [found[at] for at in run]
            assert joined_text(parts) == text[parts[0].start : parts[-1].end]
