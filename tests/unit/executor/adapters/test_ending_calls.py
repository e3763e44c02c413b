"""A call is ended for good by whichever registry answers, though the bus may choose one that is frozen."""

from __future__ import annotations

from typing import Any

import pytest

from wayline.contracts.chat import ToolCall
from wayline.contracts.errors import Unavailable
from wayline.contracts.tools import ToolReply
from wayline.executor.adapters import tool_registry
from wayline.executor.adapters.tool_registry import VOID_SILENT_S, ToolRegistry
from wayline.journal import Call, Job

ENDED = ToolReply(status="success", content="paid")


class MostlyFrozen:
    """A bus whose registry answers the last of some requests, and notes how long each of them waits."""

    def __init__(self, *, unanswered: int) -> None:
        self._unanswered = unanswered
        self.waited_s: list[float] = []

    async def send(self, *_: Any) -> None:
        return None

    async def ask(self, *_: Any, timeout_s: float) -> ToolReply:
        if len(self.waited_s) == self._unanswered:
            return ENDED
        self.waited_s.append(timeout_s)
        raise Unavailable("tool-registry", detail="no answer")


async def test_five_requests_to_a_frozen_replica_leave_time_for_another(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tool_registry, "ASK_AGAIN_S", 0.0)
    bus: Any = MostlyFrozen(unanswered=5)
    registry = ToolRegistry(bus, fresh_s=60.0, wait_s=6.0)

    reply = await registry.void(
        Job(job_id="j1", tenant="default"), Call(ToolCall(call="1", tool="pay"), key="default/j1/1/1")
    )

    assert reply == ENDED
    assert sum(bus.waited_s) < VOID_SILENT_S
