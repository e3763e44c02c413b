"""Room in memory: bounded, in order, and always given back."""

from contextlib import ExitStack

from wayline.executor.adapters.bytes_in_flight import BytesInFlight


def test_requests_without_room_wait_in_order():
    room = BytesInFlight(10)
    with ExitStack() as later:
        with room.wanted(6) as first:
            second = later.enter_context(room.wanted(5))
            third = later.enter_context(room.wanted(1))
            assert [turn.is_set() for turn in (first, second, third)] == [True, False, False]

        assert [second.is_set(), third.is_set()] == [True, True]


def test_what_is_larger_than_all_of_it_has_it_alone():
    room = BytesInFlight(10)
    with room.wanted(1) as small:
        with room.wanted(99) as large:
            assert [small.is_set(), large.is_set()] == [True, False]
        with room.wanted(9) as other:
            assert other.is_set(), "who gave up is in nobody's way"
    with room.wanted(99) as large, room.wanted(1) as small:
        assert [large.is_set(), small.is_set()] == [True, False]
