"""What needs something that is away is done again until it works, or until its time is over."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from wayline.chassis import keep_trying
from wayline.chassis.concurrency import retrying
from wayline.contracts.errors import Full, Reject, Retry, Unavailable


class Flaky:
    """Fails with each of its errors in turn, then answers."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)

    async def ask(self) -> str:
        if self._errors:
            raise self._errors.pop(0)
        return "answer"


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were asked for; none of them takes any time."""
    asked: list[float] = []

    async def at_once(seconds: float, *_: Any) -> None:
        asked.append(seconds)

    monkeypatch.setattr(retrying, "sleep", at_once)
    return asked


async def test_the_answer_comes_after_the_failures(pauses: list[float]):
    assert await keep_trying("test", Flaky(Unavailable("the bus"), Full("no room")).ask) == "answer"
    assert len(pauses) == 2


async def test_a_pause_follows_the_error_within_bounds_and_with_jitter(pauses: list[float]):
    errors = [Retry("soon", after_s=0), Retry("later", after_s=2), Retry("much later", after_s=3_600)]

    await keep_trying("test", Flaky(*errors).ask)

    for pause, least in zip(pauses, (retrying.PAUSE_MIN_S, 2, retrying.PAUSE_MAX_S), strict=True):
        assert least <= pause <= least * (1 + retrying.SPREAD)


async def test_calls_that_failed_together_do_not_come_back_together(pauses: list[float]):
    await asyncio.gather(*(keep_trying("test", Flaky(Retry("away", after_s=2)).ask) for _ in range(20)))

    assert len(set(pauses)) > 1


async def test_an_error_that_no_repeat_mends_is_raised_at_once(pauses: list[float]):
    with pytest.raises(Reject):
        await keep_trying("test", Flaky(Reject("never", code="no")).ask)
    with pytest.raises(Full):
        await keep_trying("test", Flaky(Full("no room")).ask, on=Unavailable)
    assert pauses == []


async def test_the_last_error_is_raised_when_the_time_is_over(pauses: list[float]):
    with pytest.raises(Unavailable, match="the bus"):
        await keep_trying("test", Flaky(*[Unavailable("the bus")] * 9).ask, within_s=0)


async def test_a_long_outage_is_logged_less_and_less_often(pauses: list[float]):
    with capture_logs() as logged:
        await keep_trying("settle a job", Flaky(*[Unavailable("the router")] * 40).ask)

    assert [(entry["what"], entry["tries"]) for entry in logged] == [("settle a job", n) for n in (8, 16, 32)]
