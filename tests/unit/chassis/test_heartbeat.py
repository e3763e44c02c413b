"""Messages in hand are told of to the server, and only those."""

from __future__ import annotations

from typing import Any, cast

from nats import errors as nats_errors

from wayline.chassis.handling.heartbeat import Heartbeat
from wayline.testkit import until


class Message:
    """A delivery that counts how often it was said to be in progress."""

    def __init__(self, reply: str, *, error: Exception | None = None) -> None:
        self.reply = reply
        self.beats = 0
        self._error = error

    async def in_progress(self) -> None:
        self.beats += 1
        if self._error is not None:
            raise self._error


async def test_every_message_in_hand_beats_until_it_is_dealt_with():
    heartbeat = Heartbeat(0.001)
    long, short = (cast("Any", Message(reply)) for reply in ("long", "short"))
    heartbeat.begin(long)
    heartbeat.begin(short)
    await until(lambda: short.beats > 0, why="both beat")

    heartbeat.end(short)
    before = long.beats, short.beats
    await until(lambda: long.beats > before[0] + 2, why="the other goes on")

    # One beat may have been under way.
    assert short.beats <= before[1] + 1
    heartbeat.stop()


async def test_a_bus_that_is_away_ends_no_heartbeat():
    heartbeat = Heartbeat(0.001)
    lost = cast("Any", Message("lost", error=nats_errors.ConnectionClosedError()))
    well = cast("Any", Message("well"))
    heartbeat.begin(lost)
    heartbeat.begin(well)

    await until(lambda: lost.beats > 2 and well.beats > 2, why="both go on")

    heartbeat.stop()


async def test_a_message_that_comes_after_a_quiet_time_beats_too():
    heartbeat = Heartbeat(0.001)
    first, second = (cast("Any", Message(reply)) for reply in ("first", "second"))
    heartbeat.begin(first)
    heartbeat.end(first)
    await until(lambda: heartbeat.is_idle, why="nothing is in hand")

    heartbeat.begin(second)

    await until(lambda: second.beats > 1, why="it beats")
    assert first.beats == 0
    heartbeat.stop()
