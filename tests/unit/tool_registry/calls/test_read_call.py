"""A read is repeated as often as the settings say, unless nobody wants it any more."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wayline.contracts.errors import Unavailable
from wayline.contracts.tools import CallTool, Effect, ToolDefinition
from wayline.telemetry import Telemetry
from wayline.tool_registry.calls.bound_tool import BoundTool
from wayline.tool_registry.calls.read_call import ReadCall
from wayline.tool_registry.calls.stop_reason import StopReason
from wayline.tool_registry.definitions.tool_catalogue import Tool
from wayline.tool_registry.errors import AnswerLost, Busy, CallError
from wayline.tool_registry.settings import Settings


class Untouched:
    """A server that must not be called."""

    inside = False

    async def call(self, request):
        raise AssertionError(f"{request.tool} was called")


class Unasked:
    """A ledger: a read that is asked for the first time and brings nothing needs none."""


class Broken:
    """A server whose answers never arrive."""

    inside = False

    def __init__(self, error: CallError | None = None) -> None:
        self.calls = 0
        self.error = error or AnswerLost("the connection was lost")

    def hide(self, text: str) -> str:
        return text

    async def call(self, request):
        self.calls += 1
        raise self.error


def reading(server: Any = None, retry_after_s: tuple[float, ...] = ()) -> ReadCall:
    tool = Tool(ToolDefinition(name="look", effect=Effect.READ), "look", retry_after_s, "look", False)
    deadline = datetime.now(UTC) + timedelta(seconds=60)
    ask = CallTool(tenant="t", key="t/j/1/1", job_id="j", step=1, call="1", tool="look", deadline=deadline)
    return ReadCall(ask, BoundTool(tool, server or Untouched(), Telemetry("test"), 1_000), Unasked())  # type: ignore[arg-type]


async def test_a_read_cancelled_during_the_tool_lookup_is_not_sent():
    stopped = reading()
    stopped.stop(StopReason.CANCELLED)

    reply = await stopped.reply()

    assert reply.error is not None
    assert reply.error.code == "cancelled"


async def test_a_read_is_not_begun_by_a_process_that_ends():
    stopped = reading()
    stopped.stop(StopReason.STOPPING)

    with pytest.raises(Unavailable):
        await stopped.reply()


@pytest.mark.parametrize(("after_s", "waits"), [(None, [1, 2]), (0, [1, 2]), (1.5, [1.5, 2]), (10, [10, 10]), (11, [])])
async def test_a_busy_server_is_left_alone_as_long_as_it_asks(
    after_s: float | None, waits: list[float], monkeypatch: pytest.MonkeyPatch
):
    rested = list[float]()

    async def rest(seconds: float) -> None:
        rested.append(seconds)

    monkeypatch.setattr(random, "uniform", lambda *_: 1.0)
    monkeypatch.setattr(asyncio, "sleep", rest)

    reply = await reading(Broken(Busy("slow down", after_s=after_s)), Settings().retry_after_s).reply()

    assert rested == waits
    assert (reply.error and reply.error.code, reply.attempts) == ("tool_failed", len(waits) + 1)


async def test_a_read_is_repeated_twice_by_default_with_backoff(monkeypatch: pytest.MonkeyPatch):
    server, rested = Broken(), list[float]()

    async def rest(seconds: float) -> None:
        rested.append(seconds)

    monkeypatch.setattr(random, "uniform", lambda *_: 1.0)
    monkeypatch.setattr(asyncio, "sleep", rest)

    reply = await reading(server, Settings().retry_after_s).reply()

    assert (server.calls, rested) == (3, [1, 2])
    assert reply.error is not None and reply.attempts == 3
