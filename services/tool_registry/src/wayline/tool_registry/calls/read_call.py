"""A call of a `read` tool that names no charge: repeated freely, so it needs no row before it begins.

Its answer may say all the same that it charged: then the answer gets a row, before anybody is told of it, and a call
that may have been made already is answered from there.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

import structlog

from wayline.chassis import Failpoint, reach
from wayline.contracts.errors import Unavailable
from wayline.contracts.tools import CallTool, Effect, ToolReply
from wayline.tool_registry.calls.bound_tool import BoundTool, repeated
from wayline.tool_registry.calls.effect_call import POSTGRES_WAIT_S, once_the_ledger_answers
from wayline.tool_registry.calls.ledger import Ledger, State
from wayline.tool_registry.calls.results import failed
from wayline.tool_registry.calls.stop_reason import StopReason
from wayline.tool_registry.errors import AnswerLost, Busy, LedgerUnavailable, NeedsLogin, NotBegun, TimedOut

log = structlog.get_logger()

NOTHING = Decimal(0)
BUSY_WAIT_MAX_S = 10.0
"""A server that asks to be left alone for longer is not waited for: the model may do something else meanwhile."""


class ReadCall:
    """Tries until the tool answers, its waits are used up, or the caller's deadline has passed."""

    def __init__(self, ask: CallTool, bound: BoundTool, ledger: Ledger) -> None:
        self._ask = ask
        self._bound = bound
        self._ledger = ledger
        self._stop_reason: StopReason | None = None
        self._task: asyncio.Task[Any] | None = None

    async def reply(self) -> ToolReply:
        """Return the tool's answer, or a failure that says what was tried; await it in a task of its own."""
        self._task = asyncio.current_task()
        if self._stop_reason is not None:
            # While the tool was looked for.
            return _stopped(self._stop_reason)
        try:
            earlier_usd = NOTHING
            if self._ask.asked_before:
                earlier = await once_the_ledger_answers("look for a read", self._earlier, within_s=POSTGRES_WAIT_S)
                if isinstance(earlier, ToolReply):
                    return earlier
                earlier_usd = earlier
            reply = await self._tries()
            # From here on nothing stops it: what was charged is known nowhere else.
            self._task = None
            return await self._kept(reply, earlier_usd)
        except asyncio.CancelledError:
            if self._stop_reason is None:
                raise
            return _stopped(self._stop_reason)

    def stop(self, reason: StopReason) -> None:
        """End the call early."""
        self._stop_reason = reason
        if self._task is not None:
            self._task.cancel()

    @cached_property
    def _repeat(self) -> CallTool:
        # What it takes to learn that a call was cut is no time of the tool's.
        return repeated(self._ask, within_s=self._bound.tool.silent_max_s)

    async def _earlier(self) -> ToolReply | Decimal:
        """Return the answer that this read had already, else what another read under its key charged.

        After an executor that was killed before its model's answer was in the log the model is asked again, and may ask
        for something else.
        """
        ask = self._ask
        row = await self._ledger.find(ask.tenant, ask.key, deadline=ask.deadline)
        if row is None or row.result is None or row.state is not State.FINISHED:
            return NOTHING
        if row.effect is not Effect.READ or row.content_hash == ask.content_hash():
            return row.result.model_copy(update={"repeated": True})
        return row.result.cost_usd or NOTHING

    async def _kept(self, reply: ToolReply, earlier_usd: Decimal) -> ToolReply:
        """Return the reply with all that was charged under its key, once the ledger has it, where that is anything."""
        charged = earlier_usd + (reply.cost_usd or NOTHING)
        if not charged:
            return reply
        reply = reply.model_copy(update={"cost_usd": charged})
        try:
            await once_the_ledger_answers(
                "keep what a read charged", lambda: self._ledger.keep_read(self._ask, reply), within_s=POSTGRES_WAIT_S
            )
        except LedgerUnavailable as error:
            # The caller has it then, who writes it into the job's log.
            log.warning("what a read charged is in no ledger", key=self._ask.key, error=str(error))
        reach(Failpoint.REGISTRY_FINISH_AFTER)
        return reply

    async def _tries(self) -> ToolReply:
        if self._late():
            return failed("refused", "its deadline had passed before it could begin")
        waits_s = self._bound.tool.retry_after_s
        for attempt in range(1, len(waits_s) + 2):
            try:
                reply = await self._bound.call(self._ask if attempt == 1 else self._repeat, attempt=attempt)
                reach(Failpoint.REGISTRY_EFFECT_AFTER)
                return reply
            except (NotBegun, AnswerLost, Busy) as error:
                wait_s = wait_before_repeat(error, waits_s[attempt - 1 : attempt])
                if wait_s is None or self._late_after(error) or isinstance(error, NeedsLogin):
                    return self._given_up(error, attempts=attempt)
                await asyncio.sleep(wait_s)
        raise AssertionError("the last attempt returns")

    def _given_up(self, error: NotBegun | AnswerLost | Busy, *, attempts: int) -> ToolReply:
        code = "timeout" if isinstance(error, TimedOut) else "unavailable"
        if isinstance(error, NotBegun | Busy):
            code = error.code
        begun = not isinstance(error, NeedsLogin)
        # Of a call that took too long we say so; any other error may repeat what the server said.
        ours = False if isinstance(error, TimedOut) else None
        message = f"{self._ask.tool}: {error}"
        return failed(code, message, effect=Effect.READ, attempts=attempts, begun=begun, strangers=ours)

    def _late(self) -> bool:
        return datetime.now(UTC) >= self._ask.deadline

    def _late_after(self, error: NotBegun | AnswerLost | Busy) -> bool:
        """Return whether it is too late to repeat an attempt that ended so."""
        return self._late() if isinstance(error, TimedOut) else datetime.now(UTC) >= self._repeat.deadline


def wait_before_repeat(error: NotBegun | AnswerLost | Busy, waits_s: Sequence[float]) -> float | None:
    """Return how long to wait before a read that failed is repeated; None: it is not."""
    asked_s = (error.after_s or 0.0) if isinstance(error, Busy) else 0.0
    if not waits_s or asked_s > BUSY_WAIT_MAX_S:
        return None
    # Jitter: the calls that failed together do not come back together.
    return max(asked_s, waits_s[0] * random.uniform(0.75, 1.25))


def _stopped(reason: StopReason) -> ToolReply:
    if reason is StopReason.CANCELLED:
        return failed("cancelled", "the call was cancelled")
    raise Unavailable("tool-registry", detail="it is being stopped") from None
