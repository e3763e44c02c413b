"""What stops an event loop although no handler computes."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest

from wayline.chassis.loop_pauses import COLLECT_AFTER, SWITCH_S, shorten_pauses, switch_often


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    threshold, interval = gc.get_threshold(), sys.getswitchinterval()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)


def test_a_started_services_objects_are_not_searched_for_cycles():
    kept = [object() for _ in range(10)]
    kept.append(kept)  # pyright: ignore[reportArgumentType]

    shorten_pauses()

    assert not any(one is kept for one in gc.get_objects())
    assert gc.get_threshold()[0] == COLLECT_AFTER


def test_a_process_whose_threads_read_strangers_words_switches_often():
    switch_often()

    assert sys.getswitchinterval() == pytest.approx(SWITCH_S)
