"""Places of the stream that are stored are found as far as nothing lies between them."""

from __future__ import annotations

from wayline.tracing.consume.stored_ranges import RANGES_MAX, StoredRanges


def test_what_is_stored_ends_where_something_is_missing():
    stored = StoredRanges()

    stored.note([3, 1, 2])
    stored.note([5, 6])

    assert stored.end_after(0) == 3
    assert stored.end_after(4) == 6


def test_a_message_that_is_stored_late_closes_its_gap():
    stored = StoredRanges()
    stored.note([1, 2, 4, 5])
    assert stored.end_after(0) == 2

    stored.note([3])

    assert stored.end_after(2) == 5


def test_nothing_is_stored_before_the_first_place():
    stored = StoredRanges()
    stored.note([7, 8])

    assert stored.end_after(5) == 5
    assert stored.end_after(6) == 8


def test_of_too_many_gaps_the_newest_ranges_are_kept():
    stored = StoredRanges()
    stored.note(range(1, 3 * RANGES_MAX, 2))

    assert stored.end_after(0) == 0
    assert stored.end_after(3 * RANGES_MAX - 2) == 3 * RANGES_MAX - 1
