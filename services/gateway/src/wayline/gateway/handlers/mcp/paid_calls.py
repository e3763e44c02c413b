"""What tools charge for calls outside of any job: held in the tenant's budgets before, counted there after.

The ledger is told before the call what it may cost, and after it what it did cost. So where this process is killed in
between, the books say that nobody knows, until the same call is asked for again or the router settles its charge.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import structlog

from wayline.chassis import Failpoint, keep_trying, reach
from wayline.contracts.budgets import ChargeBudgets, Extended, HoldCharge, Settled
from wayline.contracts.errors import Reject, Retry
from wayline.contracts.events import Bounds
from wayline.contracts.money import dollars
from wayline.contracts.tools import CallTool, ToolDefinition, ToolReply
from wayline.contracts.traces import Recorded, RecordSpending, Spending
from wayline.gateway.handlers.shared.dependencies import Gateway

log = structlog.get_logger()

CHARGE_WITHIN_S: Final = 300.0
"""How long a tool's charge is tried to be counted while the router or tracing is away."""
NOTE_WITHIN_S: Final = 2.0
"""How long a call waits for the ledger to know what it may cost."""
DIGITS: Final = 20
"""Of a content hash in an id."""
NOTHING: Final = Decimal(0)
KEY_CONFLICT: Final = "tool_key_conflict"
"""What the registry says of a key that stands for another call: this one was not made."""
SETTLED: Final = "ended"
"""What the router says of a charge that was counted before: the same call again, whose result is in the ledger."""


class PaidCalls:
    """Holds and counts; a call goes on to its end and is counted also when its client leaves."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._running: set[asyncio.Task[Any]] = set()

    async def hold(self, asked: CallTool, tool: ToolDefinition) -> str | None:
        """Have the most that a call charges held, and return why it may not be made; None: it may."""
        if not (most_usd := _most_usd(asked, tool)):
            return None
        hold = HoldCharge(tenant=asked.tenant, charge_id=_charge_id(asked), usd=most_usd)
        held = await self._gateway.bus.ask(hold, Extended)
        if held.granted:
            await self._note(asked, most_usd)
            reach(Failpoint.GATEWAY_HOLD_AFTER)
            return None
        if held.limited_by == SETTLED:
            return None
        again = f"; it begins anew at {held.resets_at:%Y-%m-%d %H:%M} UTC" if held.resets_at else ""
        return (
            f"{tool.name} was not called: budget {held.limited_by!r} has no room for a call of up to "
            f"{dollars(most_usd)}{again}"
        )

    async def _note(self, asked: CallTool, most_usd: Decimal) -> None:
        """Have the ledger know what a call may cost; one that cannot be asked now keeps no call from being made."""
        record = RecordSpending(tenant=asked.tenant, entries=(_entry(asked, NOTHING, most_usd),))
        try:
            await self._gateway.bus.ask(record, Recorded, timeout_s=NOTE_WITHIN_S)
        except (Retry, Reject) as error:
            log.warning("what a call may cost was not recorded before it", tool=asked.tool, error=str(error))

    def follow(
        self, asked: CallTool, tool: ToolDefinition, call: Coroutine[Any, Any, ToolReply]
    ) -> asyncio.Task[ToolReply]:
        """Make a call that money is held for in a task of its own, and count what it charged."""
        following = self._task(self._followed(asked, tool, call), f"paid call {asked.key}")
        # Its client may have left: then nobody asks for its error.
        following.add_done_callback(lambda task: task.cancelled() or task.exception())
        return following

    async def _followed(self, asked: CallTool, tool: ToolDefinition, call: Coroutine[Any, Any, ToolReply]) -> ToolReply:
        try:
            reply = await call
        except BaseException as error:
            if isinstance(error, Reject) and error.code == KEY_CONFLICT:
                await self._counted(asked, NOTHING, NOTHING)
            else:
                # It may have been made: the most that it charges stays counted.
                self.count(asked, tool, None)
            raise
        self.count(asked, tool, reply)
        return reply

    def count(self, asked: CallTool, tool: ToolDefinition, reply: ToolReply | None) -> None:
        """Count what a call charged, beside its answer: it has acted, whatever becomes of the count."""
        most_usd = _most_usd(asked, tool)
        cost_usd = (reply.cost_usd if reply else None) or NOTHING
        unsure_usd = most_usd if reply is None or reply.may_have_charged else NOTHING
        if cost_usd or most_usd:
            counting = self._task(self._counted(asked, cost_usd, unsure_usd), f"charge {asked.key}")
            counting.add_done_callback(_log_failure)

    def _task(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        task = asyncio.create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _counted(self, asked: CallTool, cost_usd: Decimal, unsure_usd: Decimal) -> None:
        bus, tenant = self._gateway.bus, asked.tenant
        # Both know a charge by its id, so that saying one again changes nothing.
        reach(Failpoint.GATEWAY_COUNT_BEFORE)
        charge = ChargeBudgets(tenant=tenant, charge_id=_charge_id(asked), cost_usd=cost_usd, unsettled_usd=unsure_usd)
        record = RecordSpending(tenant=tenant, entries=(_entry(asked, cost_usd, unsure_usd),))
        try:
            await keep_trying("count a charge", lambda: bus.ask(charge, Settled), within_s=CHARGE_WITHIN_S)
            reach(Failpoint.GATEWAY_COUNT_AFTER)
            # Also what cost nothing: the ledger has what it may have cost.
            await keep_trying("record a charge", lambda: bus.ask(record, Recorded), within_s=CHARGE_WITHIN_S)
        except (Retry, Reject) as error:
            log.error("a tool's charge was not counted", tool=asked.tool, cost_usd=str(cost_usd), error=str(error))


def _log_failure(counting: asyncio.Task[None]) -> None:
    """Say that a charge was not counted where nobody waits for it, as when the bus has been left meanwhile."""
    error = None if counting.cancelled() else counting.exception()
    if error is not None:
        log.error("a tool's charge was not counted", task=counting.get_name(), error=repr(error))


def _most_usd(asked: CallTool, tool: ToolDefinition) -> Decimal:
    return NOTHING if tool.charge is None else tool.charge.most(asked.arguments)


def _charge_id(asked: CallTool) -> str:
    """Return the id of what a call charges: of its content too, so that a conflict of keys changes no other charge."""
    return f"tool/{asked.job_id.removeprefix('mcp_')}{asked.content_hash()[:DIGITS]}"


def _entry(asked: CallTool, cost_usd: Decimal, unsure_usd: Decimal) -> Spending:
    unsure = Bounds(lower_usd=cost_usd, upper_usd=cost_usd + unsure_usd) if unsure_usd else None
    return Spending(
        attempt_id=f"{asked.key}/{asked.content_hash()[:DIGITS]}",
        purpose="tool",
        provider="tools",
        model=asked.tool,
        cost_usd=None if unsure else cost_usd,
        unsettled=unsure,
        at=datetime.now(UTC),
    )
