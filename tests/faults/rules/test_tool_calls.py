"""Rules 22 and 23 of the job protocol: the log knows of a call before its tool does."""

from __future__ import annotations

import pytest

from ..platform import ONCE, FaultPlatform, calls, says
from .scene import ALL, running, until_parked
from .wire import Wire, on, record

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


async def test_rule_22_the_intent_is_logged_before_the_tool_is_called(platform: FaultPlatform, wire: Wire):
    async with running(platform, *ALL):
        await platform.submit_plan("r22", calls(ONCE), says("done"))
        await platform.until_ended("r22")
        await platform.until_quiet()
    order = wire.order(record("r22", "tool.requested"), on("tools.call."), record("r22", "tool.completed"))
    assert None not in order and order == sorted(order)  # type: ignore[type-var]


async def test_rule_23_an_unfinished_once_call_is_never_repeated(platform: FaultPlatform):
    """Started, its lease dead: the outcome is unknown, a human decides, and the tool is not called."""
    key = await platform.forget_outcome("r23", 1, "1")
    await platform.sql("UPDATE tools.calls SET state = 'started', ended_at = NULL WHERE key = $1", key)
    async with running(platform, *ALL):
        await platform.submit_plan("r23", calls(ONCE), says("done"))
        head = await until_parked(platform, "r23")
        assert head.values[-1]["waiting"]["why"] == "needs_decision"
        await platform.until_ended("r23")
        await platform.until_quiet()
    assert platform.effects.count("pay_once", key) == 0
