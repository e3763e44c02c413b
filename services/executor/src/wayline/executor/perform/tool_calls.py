"""Runs a held job's tool calls, settles the open ones, and writes a human's decision into the ledger."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from wayline.chassis import Failpoint, stopped
from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.tools import RECALL, Effect, ToolError, ToolReply
from wayline.executor.adapters.tool_registry import fitted
from wayline.executor.decide.actions import Resolve, RunTools, SettleCalls
from wayline.executor.hold.held_job import Cancelled, HeldJob
from wayline.executor.perform.park_or_end import expiry
from wayline.executor.perform.services import RunServices
from wayline.executor.prompt.builtin_tools import asked_for, recalled, refusal
from wayline.executor.prompt.shorten import shown
from wayline.journal import Call
from wayline.llm.broken_json.arguments import UNREADABLE

TOOL_TIMEOUT_S = 60.0
"""For a call of a tool that was never listed: the registry will refuse it anyway."""
STOPPED_BECAUSE = {
    "cancelled": "the job was cancelled while the tool was running",
    "timeout": "the job's time was over while the tool was running",
}


async def run_tools(hands: RunServices, hold: HeldJob, action: RunTools) -> None:
    """Write every intent, run the calls beside each other, note each result as it comes."""
    calls = [_intend(hold, call) for call in action.calls]
    await hold.pen.append(Failpoint.EXECUTOR_INTENT_BEFORE, Failpoint.EXECUTOR_INTENT_AFTER)
    try:
        await hold.listening(_finish(hands, hold, calls), finish_when_draining=False, seconds=hold.seconds_left)
    except Cancelled:
        # What is still open is settled next.
        return
    except TimeoutError:
        # No event says that the time is over, so `decide` cannot know it yet.
        begun = tuple(call for call in hold.pen.job.calls if call.key is not None and call.done is None)
        await settle_calls(hands, hold, SettleCalls(begun, "timeout"))


def _intend(hold: HeldJob, call: Call) -> Call:
    """The call with its key, noted as an intent unless the log has it already; a human's «do it again» is a new key."""
    pen, job = hold.pen, hold.pen.job
    again = call.decision is not None and call.decision.outcome == "retry"
    if call.key is not None and not again:
        return call
    wanted = call.meant
    definition = job.tool(wanted.tool)
    pen.note(
        e.ToolRequested,
        ids.tool_span(job.tenant, job.job_id, job.step, wanted.call),
        step=job.step,
        call=wanted.call,
        tool=wanted.tool,
        arguments=fitted(job, call),
        effect=definition.effect if definition else Effect.ONCE,
        key=_next_key(call.key) if call.key else ids.tool_key(job.tenant, job.job_id, job.step, wanted.call),
    )
    return next(noted for noted in pen.job.calls if noted.wanted.call == wanted.call)


def _next_key(key: str) -> str:
    """`…/1` → `…/1/2` → `…/1/3`: the first four parts are the call, the fifth its repeat."""
    parts = key.split("/")
    return "/".join([*parts[:4], str(int(parts[4]) + 1 if len(parts) == 5 else 2)])


async def _finish(hands: RunServices, hold: HeldJob, calls: list[Call]) -> None:
    """Append each result as it ends; the last one is left noted, to share its record with what follows from it."""
    job = hold.pen.job
    if len(calls) == 1:
        return _note_reply(hands, hold, job.step, calls[0], await _call_tool(hands, hold, calls[0]))
    running = {asyncio.ensure_future(_call_tool(hands, hold, call)): call for call in calls}
    try:
        while running:
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                _note_reply(hands, hold, job.step, running.pop(task), task.result())
            if running:
                # A cancel may end this step, but not half an append: whether the record is in must be known.
                append = hold.pen.append(Failpoint.EXECUTOR_RESULT_BEFORE, Failpoint.EXECUTOR_RESULT_AFTER)
                await asyncio.shield(append)
    finally:
        await stopped(*running)
        # Whoever stops us may come between an answer and its note: what it says and what it cost is known all the same.
        for task, call in running.items():
            if not task.cancelled() and task.exception() is None:
                _note_reply(hands, hold, job.step, call, task.result())


async def _call_tool(hands: RunServices, hold: HeldJob, call: Call) -> ToolReply:
    job = hold.pen.job
    if UNREADABLE in call.meant.arguments:
        # A schema that asks for nothing would let them pass.
        message = "the arguments are not a JSON object: call it again, with one"
        return ToolReply(status="failed", error=ToolError(code="invalid_arguments", message=message))
    if call.meant.tool == RECALL:
        return await _recall(hold, call)
    if refused := refusal(job, call.meant):
        return refused
    definition = job.tool(call.meant.tool)
    return await hands.tools.call(job, call, timeout_s=definition.timeout_s if definition else TOOL_TIMEOUT_S)


async def _recall(hold: HeldJob, call: Call) -> ToolReply:
    """Our own log, read again: no ledger, because a repeat does nothing."""
    asked = asked_for(call.meant)
    if isinstance(asked, ToolReply):
        return asked
    return recalled(call.meant, await hold.pen.result(*asked))


def _note_reply(hands: RunServices, hold: HeldJob, step: int, call: Call, reply: ToolReply) -> None:
    wanted, span = call.meant, call.span
    named: dict[str, Any] = {"step": step, "call": wanted.call, "tool": wanted.tool}
    if reply.status == "unknown":
        assert call.key is not None
        decision_id = "-".join(call.key.split("/")[2:])
        pen_events = {"key": call.key, "decision_id": decision_id, "expires_at": expiry(hands, hold)}
        hold.pen.note(e.ToolUnknown, span, **named, **pen_events)
        return
    hold.pen.note(
        e.ToolCompleted,
        span,
        **named,
        **shown(hold.pen.job, wanted.tool, reply, step=step, call=wanted.call, tokens_max=hands.result_tokens_max),
        status="success" if reply.status == "success" else "failed",
        citations=reply.citations,
        duration_ms=reply.duration_ms,
        size_bytes=reply.size_bytes,
        tokens=reply.tokens,
        cost_usd=reply.cost_usd,
    )


async def settle_calls(hands: RunServices, hold: HeldJob, action: SettleCalls) -> None:
    """Settle every open call in the ledger and note what it says: its job ends only after that.

    The log says first that this executor holds the job. Another cancel changes nothing; a drain hands the job back,
    and its next holder settles the same calls again.
    """
    await hold.pen.append(Failpoint.EXECUTOR_INTENT_BEFORE, Failpoint.EXECUTOR_INTENT_AFTER)
    job = hold.pen.job
    replies = await hold.listening(_settled_all(hands, hold, action), finish_when_draining=False, cancellable=False)
    for call, reply in zip(action.calls, replies, strict=True):
        _note_reply(hands, hold, job.step, call, reply)


async def _settled_all(hands: RunServices, hold: HeldJob, action: SettleCalls) -> list[ToolReply]:
    return await asyncio.gather(*(_settled(hands, hold, call, action.why) for call in action.calls))


async def _settled(hands: RunServices, hold: HeldJob, call: Call, why: Literal["cancelled", "timeout"]) -> ToolReply:
    """Return how an open call ended; a call that no registry was asked for ends here."""
    job = hold.pen.job
    message = STOPPED_BECAUSE[why]
    if UNREADABLE in call.meant.arguments or call.meant.tool == RECALL or refusal(job, call.meant):
        return ToolReply(status="failed", error=ToolError(code=why, message=message))
    definition = job.tool(call.meant.tool)
    reply = await hands.tools.settle(job, call, timeout_s=definition.timeout_s if definition else TOOL_TIMEOUT_S)
    if reply.error is None or reply.error.code != "cancelled":
        return reply
    return reply.model_copy(update={"error": ToolError(code=why, message=f"{message}: {reply.error.message}")})


async def resolve(hands: RunServices, hold: HeldJob, action: Resolve) -> None:
    """A human has decided: the log says so first, then the ledger is told; a result that arrived meanwhile wins."""
    assert action.call.decision is not None
    await hold.pen.append(Failpoint.EXECUTOR_RESOLVE_BEFORE, Failpoint.EXECUTOR_RESOLVE_AFTER)
    telling = hands.tools.resolve(hold.pen.job, action.call, action.call.decision)
    try:
        # The registry may be away for long: a cancel is heard, and the process's end is not held up.
        reply = await hold.listening(telling, finish_when_draining=False)
    except Cancelled:
        return
    _note_reply(hands, hold, hold.pen.job.step, action.call, reply)
