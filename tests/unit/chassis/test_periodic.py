"""What is done again and again goes on, whatever one turn of it comes to, and ends when it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from wayline.chassis import Periodic
from wayline.contracts.errors import Unavailable
from wayline.testkit import until

NEVER_S = 3_600.0
"""A pause that no test sees the end of."""


class Turns:
    """A piece of work whose turns a test counts, holds up and lets fail."""

    def __init__(self, *errors: Exception) -> None:
        self.begun = self.ended = 0
        self.go_on = asyncio.Event()
        self.go_on.set()
        self._errors = list(errors)

    async def do(self) -> None:
        self.begun += 1
        await self.go_on.wait()
        self.ended += 1
        if self._errors:
            raise self._errors.pop(0)

    async def until_begun(self, turns: int) -> None:
        await until(lambda: self.begun >= turns, why=f"turn {turns} has begun")


async def started(
    do: Callable[[], Awaitable[object]],
    *,
    every_s: float = NEVER_S,
    rest_factor: float = 0.0,
    last_turn: bool = False,
) -> Periodic:
    periodic = Periodic("test", do, every_s=every_s, rest_factor=rest_factor, last_turn=last_turn)
    await periodic.start()
    return periodic


async def test_a_turn_that_fails_is_followed_by_the_next():
    turns = Turns(ZeroDivisionError("unexpected"), Unavailable("the bus"))
    periodic = await started(turns.do, every_s=0.001)

    await turns.until_begun(4)
    await periodic.stop(1)


@pytest.mark.parametrize(
    ("error", "level", "event"),
    [
        (Unavailable("the bus"), "warning", "put off"),
        (OSError("refused"), "warning", "put off"),
        (TimeoutError(), "warning", "put off"),
        (ZeroDivisionError("unexpected"), "error", "failed"),
    ],
)
async def test_a_transient_failure_is_a_warning_and_any_other_an_error(error: Exception, level: str, event: str):
    turns = Turns(error)
    with capture_logs() as logged:
        periodic = await started(turns.do, every_s=0.001)
        await turns.until_begun(2)
        await periodic.stop(1)

    assert [(entry["log_level"], entry["event"], entry["what"]) for entry in logged] == [(level, event, "test")]


async def test_now_begins_the_next_turn_at_once():
    turns = Turns()
    periodic = await started(turns.do)
    await until(lambda: turns.ended == 1, why="the first turn is over")

    periodic.now()

    await turns.until_begun(2)
    await periodic.stop(1)


async def test_now_during_a_turn_is_followed_by_another_turn():
    turns = Turns()
    turns.go_on.clear()
    periodic = await started(turns.do)
    await turns.until_begun(1)

    periodic.now()
    turns.go_on.set()

    await turns.until_begun(2)
    await periodic.stop(1)


async def test_a_long_turn_is_followed_by_a_longer_rest():
    turns = Turns()
    turns.go_on.clear()
    # However short the turn is, the rest after it is longer than any test.
    periodic = await started(turns.do, every_s=0, rest_factor=1e12)
    await turns.until_begun(1)

    turns.go_on.set()
    await until(lambda: turns.ended == 1, why="the first turn is over")
    for _ in range(100):
        await asyncio.sleep(0)

    assert turns.begun == 1
    await periodic.stop(1)


async def test_a_stop_waits_for_the_present_turn_and_begins_no_other():
    turns = Turns()
    turns.go_on.clear()
    periodic = await started(turns.do, every_s=0)
    await turns.until_begun(1)

    stopping = asyncio.create_task(periodic.stop(NEVER_S))
    await asyncio.sleep(0)
    assert not stopping.done()
    turns.go_on.set()
    await stopping

    assert (turns.begun, turns.ended) == (1, 1)


async def test_a_stop_during_a_pause_ends_at_once():
    turns = Turns()
    periodic = await started(turns.do)
    await until(lambda: turns.ended == 1, why="the first turn is over")

    await periodic.stop(NEVER_S)

    assert turns.begun == 1


async def test_a_turn_that_outlasts_the_grace_is_cancelled_for_sure():
    ended = asyncio.Event()

    async def do() -> None:
        try:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                # As a client library that loses a cancellation.
                await asyncio.Event().wait()
        finally:
            ended.set()

    periodic = await started(do)
    await asyncio.sleep(0)

    await periodic.stop(0)

    assert ended.is_set()


async def test_a_last_turn_follows_the_stop_where_it_was_asked_for():
    turns = Turns()
    periodic = await started(turns.do, last_turn=True)
    await until(lambda: turns.ended == 1, why="the first turn is over")

    await periodic.stop(NEVER_S)

    assert turns.ended == 2


async def test_what_was_never_started_can_be_stopped():
    await Periodic("test", Turns().do, every_s=1).stop(1)
