"""When a router looks again at a lane in which tickets wait."""

from __future__ import annotations

from dataclasses import replace

from wayline.router.fair_share.look_pace import (
    BELIEVED_S,
    FEED_EVERY_S,
    REST_EACH_S,
    LaneCounts,
    LookPace,
)

COUNTS = LaneCounts(taken=100, taken_upto=140, taken_in_front=3, backlog=20, front=4, waiting=5_000)


def looked(*, given: int = 0) -> LookPace:
    pace = LookPace()
    pace.looked(COUNTS, given=given, tenants=3, now=10.0)
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


def test_a_look_at_few_tenants_is_followed_by_the_usual_pause():
    assert LookPace().looked(COUNTS, given=1, tenants=3, now=10.0) == FEED_EVERY_S


def test_a_look_at_many_tenants_is_followed_by_a_longer_rest():
    pace, many = LookPace(), 5_000

    pause = pace.looked(COUNTS, given=16, tenants=many, now=0.0)

    assert pause == many * REST_EACH_S > FEED_EVERY_S
    assert (pace.rests(now=0.0), pace.rests(now=pause)) == (pause, 0.0)


def test_a_lane_that_was_never_looked_at_is_looked_at_now():
    pace = LookPace()

    assert (pace.rests(now=0.0), pace.spares(COUNTS, now=0.0)) == (0.0, False)
