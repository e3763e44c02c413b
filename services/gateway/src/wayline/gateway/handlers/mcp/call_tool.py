"""A call of a tool outside of any job: by the registry, with its ledger and its limits."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import anyio
import structlog
from mcp_types import CallToolResult
from opentelemetry import trace

from wayline.chassis import keep_trying
from wayline.contracts.budgets import ChargeBudgets, Settled
from wayline.contracts.errors import Bug, Reject, Retry
from wayline.contracts.tools import CallTool, CancelTool, Effect, ToolDefinition, ToolReply
from wayline.contracts.traces import Recorded, RecordSpending, Spending
from wayline.gateway.handlers.dependencies import Gateway
from wayline.gateway.handlers.mcp.offers import needs_approval
from wayline.gateway.handlers.mcp.requests import McpRequest
from wayline.gateway.handlers.mcp.results import failure, result_of
from wayline.telemetry import names

log = structlog.get_logger()

ASK_WAIT_S: Final = 10.0
"""How long the registry is waited for at once; it answers `in_progress` before."""
ASK_AGAIN_S: Final = 0.2
CHARGE_WITHIN_S: Final = 300.0
"""How long a tool's charge is tried to be counted while the router or tracing is away."""
STEP: Final = 1


class ToolCalls:
    """Calls tools of the registry for MCP clients."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._charging: set[asyncio.Task[None]] = set()

    async def call(self, request: McpRequest, tool: ToolDefinition, arguments: dict[str, Any]) -> CallToolResult:
        """Call a tool to its end; a client that cancels stops it."""
        if needs_approval(tool):
            message = (
                f"a call of {tool.name} needs a person's approval, which only a job can wait for: "
                "have an agent that may use it do this, with run_agent"
            )
            return failure(message, code="needs_approval")
        if request.user_id is not None:
            request.require("write", to="call tools for a user")
        asked = self._asked(request, tool, arguments)
        trace.get_current_span().set_attribute(names.EFFECT, tool.effect)
        try:
            reply = await self._reply(asked, tool)
        except asyncio.CancelledError:
            if request.closes_to_cancel:
                with anyio.CancelScope(shield=True):
                    await self._gateway.bus.send(CancelTool(tenant=asked.tenant, key=asked.key))
            raise
        if reply.cost_usd:
            self._charge(asked, reply.cost_usd)
        return result_of(reply, tool)

    def _asked(self, request: McpRequest, tool: ToolDefinition, arguments: dict[str, Any]) -> CallTool:
        tenant = request.caller.tenant
        return CallTool(
            tenant=tenant,
            key=request.ids.tool_key(tenant),
            job_id=request.ids.call_id,
            step=STEP,
            call="1",
            tool=tool.name,
            arguments=arguments,
            deadline=datetime.now(UTC) + timedelta(seconds=tool.timeout_s),
            user_id=request.user_id,
            direct=True,
        )

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
                continue
            except Reject as error:
                if error.code != Bug.code or tool.effect is Effect.READ:
                    raise
                # The registry failed before, while or after the tool acted: only its ledger can tell.
                if late:
                    return ToolReply(status="unknown", effect=tool.effect)
                await asyncio.sleep(ASK_AGAIN_S)
                continue
            if reply.status != "in_progress":
                return reply

    def _charge(self, asked: CallTool, cost_usd: Decimal) -> None:
        """Count what the tool charged, beside the answer: it has acted, whatever becomes of the count."""
        charging = asyncio.create_task(self._charged(asked, cost_usd), name=f"charge {asked.key}")
        self._charging.add(charging)
        charging.add_done_callback(self._charging.discard)

    async def _charged(self, asked: CallTool, cost_usd: Decimal) -> None:
        bus, tenant = self._gateway.bus, asked.tenant
        # Both know a charge by its id, so that saying one again changes nothing.
        entry = Spending(
            attempt_id=asked.key,
            purpose="tool",
            provider="tools",
            model=asked.tool,
            cost_usd=cost_usd,
            at=datetime.now(UTC),
        )
        record = RecordSpending(tenant=tenant, entries=(entry,))
        charge = ChargeBudgets(tenant=tenant, charge_id=f"tool/{asked.job_id.removeprefix('mcp_')}", cost_usd=cost_usd)
        try:
            await keep_trying("count a charge", lambda: bus.ask(charge, Settled), within_s=CHARGE_WITHIN_S)
            await keep_trying("record a charge", lambda: bus.ask(record, Recorded), within_s=CHARGE_WITHIN_S)
        except (Retry, Reject) as error:
            log.error("a tool's charge was not counted", tool=asked.tool, cost_usd=str(cost_usd), error=str(error))
