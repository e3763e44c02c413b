"""Calls of tools outside of any job, over every door: the registry makes them once for a key, and they are paid for."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from typing import Final

from wayline.contracts.errors import Bug, Full, Reject, Retry
from wayline.contracts.tools import CallTool, ToolDefinition, ToolReply
from wayline.gateway.errors import NoBudget
from wayline.gateway.handlers.mcp.paid_calls import PaidCalls
from wayline.gateway.handlers.shared.dependencies import Gateway

BEGUN_PER_TENANT_MAX: Final = 200
"""Calls of one tenant over HTTP that run here, also those whose clients wait no longer."""
ASK_WAIT_S: Final = 10.0
"""How long the registry is waited for at once; it answers `in_progress` before."""
ASK_AGAIN_S: Final = 0.2


class DirectCalls:
    """Has the registry make calls, and their charges held before and counted after."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._paid = PaidCalls(gateway)
        self._begun: set[asyncio.Task[ToolReply]] = set()
        self._by_tenant: Counter[str] = Counter()

    def begin(self, asked: CallTool, tool: ToolDefinition) -> asyncio.Task[ToolReply]:
        """Make a call in a task of its own: it goes on to its end, and is counted, also when nobody waits any more.

        Raises Full where too many of the tenant run.
        """
        if self._by_tenant[asked.tenant] >= BEGUN_PER_TENANT_MAX:
            raise Full(f"the list of {BEGUN_PER_TENANT_MAX} tool calls that one tenant may have running here")
        task = asyncio.create_task(self.once(asked, tool), name=f"call {asked.key}")
        self._begun.add(task)
        self._by_tenant[asked.tenant] += 1
        task.add_done_callback(partial(self._ended, tenant=asked.tenant))
        return task

    def _ended(self, task: asyncio.Task[ToolReply], *, tenant: str) -> None:
        self._begun.discard(task)
        self._by_tenant[tenant] -= 1
        if not self._by_tenant[tenant]:
            del self._by_tenant[tenant]
        if not task.cancelled():
            # Its client may have left: then nobody asks for its error.
            task.exception()

    async def once(self, asked: CallTool, tool: ToolDefinition) -> ToolReply:
        """Return what became of a call, and have its charge counted. Raises NoBudget, or what the registry says."""
        if (refused := await self._paid.hold(asked, tool)) is not None:
            raise NoBudget(refused)
        if tool.charge is not None:
            return await asyncio.shield(self._paid.follow(asked, tool, self._reply(asked, tool)))
        reply = await self._reply(asked, tool)
        self._paid.count(asked, tool, reply)
        return reply

    async def _reply(self, asked: CallTool, tool: ToolDefinition) -> ToolReply:
        """Ask until the registry knows the outcome: with the same key, so that the tool acts once."""
        while True:
            late = datetime.now(UTC) > asked.deadline
            try:
                reply = await self._gateway.bus.ask(asked, ToolReply, timeout_s=ASK_WAIT_S)
            except Retry as error:
                if late:
                    raise
                await asyncio.sleep(max(ASK_AGAIN_S, error.after_s))
                asked = asked.model_copy(update={"asked_before": True})
                continue
            except Reject as error:
                if error.code != Bug.code or tool.is_free_read:
                    raise
                # The registry failed before, while or after the tool acted: only its ledger can tell.
                if late:
                    return ToolReply(status="unknown", effect=tool.effect)
                await asyncio.sleep(ASK_AGAIN_S)
                continue
            if reply.status != "in_progress":
                return reply
