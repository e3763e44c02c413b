"""How long an answer may wait for its client to read it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from wayline.chassis.bounded_http import READ_MIN_BYTES_S, UnreadAnswer

STALLED_S = 30.0
SLOW = int(READ_MIN_BYTES_S * STALLED_S)


class Line:
    """A transport and its event loop: what waits on it, and what is looked at when the time is over."""

    def __init__(self, waits: int) -> None:
        self.waits = waits
        self.aborted = False
        self.due: Callable[[], Any] | None = None

    def get_write_buffer_size(self) -> int:
        return self.waits

    def abort(self) -> None:
        self.aborted = True

    def call_later(self, after_s: float, do: Callable[[int], None], waited: int) -> Line:
        assert after_s == STALLED_S
        self.due = lambda: do(waited)
        return self

    def cancel(self) -> None:
        self.due = None

    def pass_time(self) -> None:
        assert self.due is not None
        self.due()

    def begin(self) -> UnreadAnswer:
        unread = UnreadAnswer(
            cast("asyncio.Transport", self), cast("asyncio.AbstractEventLoop", self), stalled_s=STALLED_S
        )
        unread.begin()
        return unread


def test_a_large_answer_that_is_read_slowly_is_sent_whole():
    line = Line(waits=10 * SLOW)
    unread = line.begin()

    while line.waits > SLOW:
        line.waits -= SLOW
        line.pass_time()
    unread.end()

    assert not line.aborted
    assert line.due is None


def test_an_answer_of_which_next_to_nothing_is_read_is_cut():
    line = Line(waits=10 * SLOW)
    line.begin()

    line.waits -= SLOW
    line.pass_time()
    line.waits -= SLOW - 1
    line.pass_time()

    assert line.aborted
