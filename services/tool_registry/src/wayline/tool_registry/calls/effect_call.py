"""A call whose repeat would matter: begun in the ledger, executed by one holder, finished there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import structlog

from wayline.chassis import Failpoint, keep_trying, reach
from wayline.contracts import ids
from wayline.contracts.tools import CallTool, Effect, ToolReply
from wayline.tool_registry.calls.bound_tool import BoundTool, repeated
from wayline.tool_registry.calls.ledger import Lease, Ledger, NextStep, Row, State, next_step
from wayline.tool_registry.calls.results import failed
from wayline.tool_registry.calls.stop_reason import StopReason
from wayline.tool_registry.errors import AnswerLost, LeaseLost, LedgerUnavailable, NotBegun, Unusable

T = TypeVar("T")

log = structlog.get_logger()

JOIN_POLL_FIRST_S = 0.02
JOIN_POLL_MAX_S = 0.25
FOUND_FRESH_S = 1.0
"""How long a tool that was found is believed to be there still, and as it was."""
POSTGRES_WAIT_S = 15.0
"""How long a call waits for a ledger that does not answer before its caller must ask again."""
RECORD_WAIT_S = 900.0
"""How long an outcome is held for a ledger that does not answer, before it is lost and the call is unknown."""

Find = Callable[[], Awaitable[BoundTool | ToolReply]]
"""The tool, ready to be called with these arguments, or why it cannot be."""


class EffectCall:
    """Leads one key from its row to an outcome in the ledger."""

    def __init__(
        self,
        ask: CallTool,
        find: Find,
        ledger: Ledger,
        *,
        attempts_max: int,
        join_s: float,
        cancel_wait_s: float = 0.0,
        found: BoundTool | ToolReply | None = None,
    ) -> None:
        """Make a call; `found` is what `find` has just returned, good for a first attempt that begins at once."""
        self._ask = ask
        self._repeat = ask
        self._find = find
        self._found = found
        self._ledger = ledger
        self._attempts_max = attempts_max
        self._join_s = join_s
        self._cancel_wait_s = cancel_wait_s
        # Of this one run: after a lost answer from Postgres, a row with this token is our own.
        self._owner = ids.new_id("run")
        self._stop_reason: StopReason | None = None
        self._request: asyncio.Task[ToolReply | None] | None = None
        self._sent = False
        self._cut: asyncio.TimerHandle | None = None

    async def reply(self) -> ToolReply:
        """Return the outcome, now or from before; `in_progress` while another process is busy with it."""
        return await once_the_ledger_answers("lead a call", self._lead, within_s=POSTGRES_WAIT_S)

    def stop(self, reason: StopReason) -> None:
        """End the request to the tool, if it was sent; what that means for the call is decided by its row.

        A cancelled one gets some time to end by itself: many tools act all the same, and only their answer tells.
        """
        self._stop_reason = self._stop_reason or reason
        if self._request is None:
            return
        if reason is not StopReason.CANCELLED:
            self._request.cancel()
        elif self._cut is None:
            self._cut = asyncio.get_running_loop().call_later(self._cancel_wait_s, self._request.cancel)

    async def _lead(self) -> ToolReply:
        lease = await self._begin()
        if isinstance(lease, ToolReply):
            return lease
        patience_s, poll_s = time.monotonic() + self._join_s, JOIN_POLL_FIRST_S
        while True:
            if lease is not None:
                outcome = await self._hold(lease, again=lease.attempt > 1)
                if outcome is not None:
                    return outcome
            row = await self._ledger.find(self._ask.tenant, self._ask.key, deadline=self._repeat.deadline)
            if row is None:
                return failed("refused", "its deadline had passed before it could begin")
            self._require_same(row)
            answer = await self._by(row)
            lease = answer if isinstance(answer, Lease) else None
            if isinstance(answer, ToolReply):
                return answer
            if lease is None:
                if time.monotonic() > patience_s:
                    return ToolReply(status="in_progress", effect=row.effect, attempts=row.attempt)
                await asyncio.sleep(poll_s)
                poll_s = min(poll_s * 2, JOIN_POLL_MAX_S)

    async def _begin(self) -> Lease | ToolReply | None:
        """Make the row, unless the call cannot be made: then only a row that is there already counts."""
        bound, self._found = self._found or await self._find(), None
        if isinstance(bound, ToolReply):
            if bound.error is not None and bound.error.code == "definition_changed":
                # Another replica that knows the tool as it was must not begin this key any more: it is asked for anew.
                await self._ledger.void(self._ask, bound)
            row = await self._ledger.find(self._ask.tenant, self._ask.key, deadline=self._ask.deadline)
            if row is not None:
                self._require_same(row)
            return bound if row is None else None
        if bound.tool.silent_max_s:
            # What it takes to learn that a call was cut, and its lease, are no time of the tool's.
            self._repeat = repeated(self._ask, within_s=bound.tool.silent_max_s + self._ledger.lease_s)
        reach(Failpoint.REGISTRY_LEDGER_BEFORE)
        lease = await self._ledger.begin(self._ask, effect=bound.tool.effect, owner=self._owner)
        reach(Failpoint.REGISTRY_LEDGER_AFTER)
        if lease is not None and lease.age_s < FOUND_FRESH_S:
            # Ours, and nobody else's before: the attempt begins now.
            self._found = bound
        return lease

    def _require_same(self, row: Row) -> None:
        """Pass for a row of this call. Raises ToolKeyConflict."""
        row.require_same(self._ask)

    async def _by(self, row: Row) -> ToolReply | Lease | None:
        """Return what a row allows us: an answer, the lease, or to wait."""
        ask, ledger = self._ask, self._ledger
        if row.state is State.STARTED and row.owner == self._owner and row.attempt == 1 and not self._sent:
            # Postgres made our row and its answer was lost on the way.
            return ledger.regain(ask, row)
        match next_step(row, attempts_max=self._attempts_max):
            case NextStep.STORED:
                assert row.result is not None
                return row.result.model_copy(update={"repeated": True})
            case NextStep.UNKNOWN:
                return unknown(row.effect, row.attempt)
            case NextStep.GIVE_UP:
                await ledger.give_up(ask.tenant, ask.key, seen=row.attempt)
            case NextStep.LOSE:
                await ledger.lose(ask.tenant, ask.key, answer_lost(ask.tool))
            case NextStep.AGAIN | NextStep.ASK_TOOL:
                return await ledger.take(self._repeat, seen=row.attempt, owner=self._owner)
            case NextStep.WAIT:
                pass
        return None

    async def _hold(self, lease: Lease, *, again: bool) -> ToolReply | None:
        """Execute under our lease and write the outcome down; None: look at the row again."""
        bound, self._found = self._found or await self._find(), None
        if isinstance(bound, ToolReply):
            # The tool is not there now: an earlier attempt may have acted, so the lease runs out and the row decides.
            return await self._record(lease, bound) if not again else None
        async with self._renewed(lease):
            try:
                reply = await self._execute(bound, lease, again=again)
            except (NotBegun, AnswerLost, Unusable, asyncio.CancelledError) as error:
                if isinstance(error, asyncio.CancelledError) and self._stop_reason is None:
                    raise
                return await self._without_answer(bound, lease, error)
            except LedgerUnavailable:
                raise
            except Exception as error:
                if not self._sent:
                    raise
                # A defect of ours between the request and its reply: the tool may have acted.
                log.error("an answer was lost", key=lease.key, error=repr(error), exc_info=error)
                return await self._without_answer(bound, lease, error)
            if reply is None:
                return None
            reach(Failpoint.REGISTRY_EFFECT_AFTER)
            return await self._record(lease, reply)

    async def _execute(self, bound: BoundTool, lease: Lease, *, again: bool) -> ToolReply | None:
        ask = self._repeat if again else self._ask
        if again and bound.tool.effect is Effect.RECONCILE:
            outcome = await self._run(bound.ask_outcome(ask, attempt=lease.attempt))
            if outcome is not None:
                return outcome
        try:
            return await self._run(bound.call(ask, attempt=lease.attempt, leaving=lambda: self._stops_before(lease)))
        except LeaseLost:
            return None

    async def _stops_before(self, lease: Lease) -> Exception | None:
        """Return what forbids the effect, asked last before it.

        A young lease needs no check: only an expired one can be taken over.
        """
        try:
            if lease.age_s > self._ledger.lease_s / 2 and not await self._ledger.renew(lease):
                return LeaseLost()
        except LedgerUnavailable as error:
            return error
        return (
            NotBegun("the call was cancelled before it was sent") if self._stop_reason is StopReason.CANCELLED else None
        )

    async def _run(self, request: Awaitable[ToolReply | None]) -> ToolReply | None:
        self._sent = True
        self._request = asyncio.ensure_future(request)
        return await self._request

    async def _without_answer(self, bound: BoundTool, lease: Lease, error: BaseException) -> ToolReply | None:
        """Decide what a missing answer means: nothing happened, or the outcome is unknown."""
        effect = bound.tool.effect
        if isinstance(error, NotBegun) and lease.attempt == 1:
            code = "cancelled" if self._stop_reason is StopReason.CANCELLED else error.code
            return await self._record(lease, failed(code, str(error), begun=False, effect=effect))
        if self._stop_reason is StopReason.FENCED:
            return None
        log.warning("a call brought no answer", key=lease.key, tool=self._ask.tool, error=str(error) or repr(error))
        if effect is Effect.ONCE:
            await self._patiently(lambda: self._ledger.disown(lease))
            return None
        if self._stop_reason is StopReason.CANCELLED:
            message = "the call was cancelled; it may have taken effect"
            return await self._record(lease, failed("cancelled", message, effect=effect, attempts=lease.attempt))
        if effect is Effect.READ:
            return await self._record(lease, answer_lost(self._ask.tool))
        # The lease is left to run out: by then what was under way has ended, and the rules of a dead lease hold.
        return None

    async def _record(self, lease: Lease, reply: ToolReply) -> ToolReply | None:
        if not await self._patiently(lambda: self._ledger.finish(lease, reply)):
            return None
        reach(Failpoint.REGISTRY_FINISH_AFTER)
        return reply

    async def _patiently(self, write: Callable[[], Awaitable[bool]]) -> bool:
        """Write an outcome, for as long as it takes: it is known nowhere else."""
        return await once_the_ledger_answers("write an outcome", write, within_s=RECORD_WAIT_S)

    @asynccontextmanager
    async def _renewed(self, lease: Lease) -> AsyncIterator[None]:
        keeping: list[asyncio.Task[None]] = []
        # Most calls end before their lease needs anybody: a task for each would cost more than it does.
        due = asyncio.get_running_loop().call_later(
            self._ledger.lease_s / 3, lambda: keeping.append(asyncio.create_task(self._keep(lease)))
        )
        try:
            yield
        finally:
            due.cancel()
            for keeper in keeping:
                keeper.cancel()

    async def _keep(self, lease: Lease) -> None:
        """Renew the lease while the tool works; stop the call when another process has taken it."""
        while True:
            try:
                if not await self._ledger.renew(lease):
                    self.stop(StopReason.FENCED)
                    return
            except LedgerUnavailable:
                pass
            await asyncio.sleep(self._ledger.lease_s / 3)


async def once_the_ledger_answers(what: str, do: Callable[[], Awaitable[T]], *, within_s: float) -> T:
    """Do something with the ledger, again while it does not answer. Raises LedgerUnavailable after so many seconds."""
    return await keep_trying(what, do, on=LedgerUnavailable, within_s=within_s, pause_max_s=JOIN_POLL_MAX_S)


def answer_lost(tool: str) -> ToolReply:
    """Return the reply of a `read` call that may have charged and whose answer never arrived."""
    message = f"the answer of {tool} was lost, and it may have charged for it: call it again if you still need it"
    return failed("timeout", message, effect=Effect.READ)


def unknown(effect: Effect, attempts: int) -> ToolReply:
    """Return the reply of a call whose outcome is unknown."""
    return ToolReply(status="unknown", effect=effect, attempts=attempts)
