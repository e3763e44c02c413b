"""A read that nobody wants any more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from wayline.contracts.errors import Unavailable
from wayline.contracts.tools import CallTool, Effect, ToolDefinition
from wayline.telemetry import Telemetry
from wayline.tool_registry.calls.bound_tool import BoundTool
from wayline.tool_registry.calls.read_call import ReadCall
from wayline.tool_registry.calls.stop_reason import StopReason
from wayline.tool_registry.tools.catalogue import Tool


class Untouched:
    """A server that must not be called."""

    inside = False

    async def call(self, request):
        raise AssertionError(f"{request.tool} was called")


def reading() -> ReadCall:
    tool = Tool(ToolDefinition(name="look", effect=Effect.READ), "look", (), "look", False)
    deadline = datetime.now(UTC) + timedelta(seconds=60)
    ask = CallTool(tenant="t", key="t/j/1/1", job_id="j", step=1, call="1", tool="look", deadline=deadline)
    return ReadCall(ask, BoundTool(tool, Untouched(), Telemetry("test"), 1_000))


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
