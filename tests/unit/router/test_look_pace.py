"""When a router looks again at a lane in which tickets wait."""

from __future__ import annotations

from dataclasses import replace

from wayline.router.fair_share.look_pace import (
    BELIEVED_S,
    FEED_EVERY_S,
    REST_FACTOR,
    LaneCounts,
    LookPace,
)

COUNTS = LaneCounts(taken=100, taken_upto=140, taken_in_front=3, backlog=20, front=4, waiting=5_000)


def looked(*, given: int = 0, took_s: float = 0.004) -> LookPace:
    pace = LookPace()
    pace.looked(COUNTS, given=given, now=10.0, took_s=took_s)
    return pace


def test_a_look_that_gave_nothing_is_spared_until_something_changes():
    pace = looked()

    assert pace.spares(COUNTS, now=10.1)
    changed = [replace(COUNTS, **{name: getattr(COUNTS, name) + 1}) for name in COUNTS.__slots__]
    assert not any(pace.spares(counts, now=10.1) for counts in changed)


def test_a_look_that_gave_turns_is_followed_by_another():
    assert not looked(given=1).spares(COUNTS, now=10.1)


def test_a_spared_look_is_made_before_the_lanes_turns_are_forgotten():
    assert not looked().spares(COUNTS, now=10.0 + BELIEVED_S)


def test_a_short_look_is_followed_by_the_usual_pause():
    assert LookPace().looked(COUNTS, given=1, now=10.0, took_s=0.004) == FEED_EVERY_S


def test_a_long_look_is_followed_by_a_longer_rest_whatever_changes():
    pace = LookPace()

    pause = pace.looked(COUNTS, given=16, now=10.0, took_s=0.125)

    assert pause == REST_FACTOR * 0.125
    assert (pace.rests(now=10.0), pace.rests(now=10.0 + pause)) == (pause, 0.0)


def test_a_lane_that_was_never_looked_at_is_looked_at_now():
    pace = LookPace()

    assert (pace.rests(now=0.0), pace.spares(COUNTS, now=0.0)) == (0.0, False)
