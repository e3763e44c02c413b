"""Runs a held job's tool calls, settles the open ones, and writes a human's decision into the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, Literal, NamedTuple

from wayline.chassis import Failpoint, stopped
from wayline.chassis.concurrency.awaited_tasks import ended_within
from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.errors import Reject
from wayline.contracts.tools import RECALL, RUN_CODE, TOOL_SEARCH, Effect, ToolError, ToolReply
from wayline.executor.decide import paid_tools
from wayline.executor.decide.actions import Resolve, RunTools, SettleCalls
from wayline.executor.decide.approvals import arguments_of, needs_new_intent
from wayline.executor.decide.open_calls import begun_calls, only_read
from wayline.executor.decide.query_rewrite import say_what_was_searched
from wayline.executor.decide.repeated_calls import answered_before, repeat_note
from wayline.executor.decide.rerank import found_passages
from wayline.executor.decide.worst_case import no_room
from wayline.executor.hold.held_job import Cancelled
from wayline.executor.hold.log_writer import Draft, draft
from wayline.executor.perform.approvals import ToolChanged, ask_again, ask_input
from wayline.executor.perform.earlier_results import read_result, read_shown_result
from wayline.executor.perform.job_run import JobRun
from wayline.executor.perform.park_or_end import expiry
from wayline.executor.perform.tool_search import SearchResult, find_tools, found, load_tool
from wayline.executor.perform.unread_calls import unread_reply
from wayline.executor.prompt.builtin_tools import asked_for, recalled, refusal
from wayline.executor.prompt.context_window import result_room
from wayline.executor.prompt.programs import logged_arguments
from wayline.executor.prompt.shorten import shown
from wayline.executor.prompt.tool_discovery import is_search
from wayline.journal import Call, Job, Repeated, words_of
from wayline.llm.broken_json.tool_arguments import UNREADABLE

TOOL_TIMEOUT_S = 60.0
"""For a call of a tool that was never listed: the registry will refuse it anyway."""
LATE_S = 0.25
"""How long the intents of calls that only read wait for the ends of the calls, to share one record with them and with
the next model call. Killed meanwhile, a job asks its model again, as it would have a moment earlier while the model
still wrote. Longer than such a call takes in a busy process, which needs the two spared records most."""
STOPPED_BECAUSE = {
    "cancelled": "the job was cancelled while the tool was running",
    "timeout": "the job's time was over while the tool was running",
    "diverged": "its program ran again and did not make the calls that are recorded",
}


class RepeatedResult(NamedTuple):
    """The result of an earlier identical call, as the model was shown it."""

    same: Repeated
    shown: dict[str, Any]

    def fields(self, tool: str) -> dict[str, Any]:
        """Return the result and a note as fields of `ToolCompleted`."""
        note = repeat_note(self.same, tool)
        named = {"repeat_of": f"{self.same.step}/{self.same.number}"}
        error = self.shown.get("error")
        if error is not None:
            return {**self.shown, **named, "error": {**error, "message": f"{error['message']}\n{note}"}}
        return {**self.shown, **named, "content": f"{self.shown.get('content', '')}\n{note}"}


async def run_tools(run: JobRun, action: RunTools) -> Iterable[Draft]:
    """Write every intent, run the calls beside each other, note each result as it comes.

    The intents of calls that act are in the log before the first of them begins.
    """
    calls = [intend(run, call) for call in action.calls]
    job, tools = run.writer.job, run.services.tools
    late = run.writer.claimed and only_read(job, calls) and not any(tools.may_charge(job, call) for call in calls)
    if not late:
        await run.writer.append(Failpoint.EXECUTOR_INTENT_BEFORE, Failpoint.EXECUTOR_INTENT_AFTER)
    try:
        await run.held.listening(_finish(run, calls, late=late), seconds=run.held.seconds_left)
    except Cancelled:
        # What is still open is settled next.
        return ()
    except TimeoutError:
        # No event says that the time is over, so `decide` cannot know it yet.
        return await settle_calls(run, SettleCalls(begun_calls(run.writer.job), "timeout"))
    return ()


def intend(run: JobRun, call: Call, *, program: str | None = None, expires_at: datetime | None = None) -> Call:
    """Return the call with its key, noted as an intent unless the log has it.

    `program`: the call that runs the program which makes this one. `expires_at`: until when the result of a tool of the
    job's caller is waited for.
    """
    job, name = run.writer.job, call.wanted.call
    if not needs_new_intent(job, call):
        return call
    definition = job.tools.definition(call.meant.tool)
    run.writer.note(
        e.ToolRequested,
        ids.tool_span(job.tenant, job.job_id, job.model.step, name),
        step=job.model.step,
        call=name,
        tool=call.meant.tool,
        arguments=arguments_of(job, call) if program is None else logged_arguments(job, call),
        effect=definition.effect if definition else Effect.ONCE,
        key=next_key(call.key) if call.key else ids.tool_key(job.tenant, job.job_id, job.model.step, name),
        program=program,
        expires_at=expires_at,
    )
    return _as_noted(run.writer.job, name)


def _as_noted(job: Job, name: str) -> Call:
    """Return a call of the model or of a program as the log has it."""
    of_program = job.code.call(name)
    return of_program if of_program is not None else next(one for one in job.tools.calls if one.wanted.call == name)


def next_key(key: str) -> str:
    """Return the key of a repeat (`…/1` → `…/1/2` → `…/1/3`): four parts name the call, the fifth its repeat."""
    parts = key.split("/")
    return "/".join([*parts[:4], str(int(parts[4]) + 1 if len(parts) == 5 else 2)])


async def _finish(run: JobRun, calls: list[Call], *, late: bool) -> None:
    """Append each result as it ends; the last one is left noted, to share its record with what follows from it."""
    step = run.writer.job.model.step
    if len(calls) == 1 and not late:
        reply = await call_tool(run, calls[0])
        return run.writer.note_all(noted_result(run, step, calls[0], reply))
    running = {asyncio.ensure_future(call_tool(run, call)): call for call in calls}
    try:
        if late and not await _ended_soon(running):
            await _append(run, Failpoint.EXECUTOR_INTENT_BEFORE, Failpoint.EXECUTOR_INTENT_AFTER)
        while running:
            done = {task for task in running if task.done()}
            if not done:
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in [task for task in running if task in done]:
                run.writer.note_all(noted_result(run, step, running.pop(task), task.result()))
            if running:
                await _append(run, Failpoint.EXECUTOR_RESULT_BEFORE, Failpoint.EXECUTOR_RESULT_AFTER)
    finally:
        await stopped(*running)
        # We may be stopped between an answer and its note: the answer and its cost are known all the same.
        for task, call in running.items():
            if not task.cancelled() and task.exception() is None:
                run.writer.note_all(noted_result(run, step, call, task.result()))


async def _ended_soon(running: Collection[asyncio.Task[Any]]) -> bool:
    """Return whether calls end while their intents can wait."""
    if len(running) == 1:
        return await ended_within(next(iter(running)), LATE_S)
    _, slow = await asyncio.wait(running, timeout=LATE_S)
    return not slow


async def _append(run: JobRun, before: Failpoint, after: Failpoint) -> None:
    """Append while calls run. A cancel may end their step, but not half an append: whether it is in must be known."""
    await asyncio.shield(run.writer.append(before, after))


async def call_tool(run: JobRun, call: Call) -> ToolReply | RepeatedResult | ToolChanged | SearchResult:
    """Answer a call from what the job knows already, or perform it here or through the registry."""
    job, wanted = run.writer.job, call.meant
    if (same := answered_before(job, call)) and (again := await read_shown_result(run.writer, same.step, same.number)):
        return RepeatedResult(same, again)
    if (unreadable := unread_reply(job, call)) is not None:
        return unreadable
    if wanted.tool == RECALL:
        return await _recall(run, call)
    if is_search(job, wanted):
        return await find_tools(run, call)
    if refused := refusal(job, wanted):
        return refused
    if job.tools.is_client(call):
        # Its program could not wait for it.
        error = ToolError(code="refused", message=f"{wanted.tool} cannot be called in a program: call it directly")
        return ToolReply(status="failed", error=error, begun=False, strangers=False)
    if call.unloaded:
        return await load_tool(run, call)
    if (instead := await _hold(run, call)) is not None:
        return instead
    tools, timeout_s = run.services.tools, _timeout_s(job, call)
    reply = await tools.call(job, call, timeout_s=timeout_s, asked_before=run.writer.may_repeat)
    if reply.error is not None and reply.error.code == "definition_changed":
        return ToolChanged(await tools.definition_now(job, call.meant.tool))
    return reply


async def _hold(run: JobRun, call: Call) -> ToolReply | ToolChanged | None:
    """Have what a call can charge held for the job; return what becomes of the call instead where that is refused."""
    job, tools, tool = run.writer.job, run.services.tools, call.meant.tool
    if job.money.held_usd is not None and job.tools.definition(tool) is None:
        # The job was never told of it, so nobody knows yet what it charges.
        now = await tools.definition_now(job, tool)
        return ToolChanged(now) if now is not None and now.charge is not None else None
    if (need := paid_tools.need(job, call)) is None:
        return None
    assert call.key is not None
    try:
        extended = await run.services.budgets.extend(job, attempt_id=call.key, total_usd=need.total_usd, waits=False)
        if extended.granted:
            return None
        why = no_room(job, extended, paid_tools.most_usd(job, call))
    except Reject as error:
        why = str(error)
    # An earlier holder may have made the call: only the ledger knows, and then its result and its cost count.
    reply = await tools.void(job, call)
    if reply.begun:
        return reply
    error = ToolError(code="refused", message=f"{tool} was not called: {why}")
    return reply.model_copy(update={"error": error, "strangers": False})


def _timeout_s(job: Job, call: Call) -> float:
    definition = job.tools.definition(call.meant.tool)
    return definition.timeout_s if definition else TOOL_TIMEOUT_S


async def _recall(run: JobRun, call: Call) -> ToolReply:
    """Read a log again, our own or one of the session's history: no ledger, because a repeat does nothing."""
    asked = asked_for(call.meant)
    if isinstance(asked, ToolReply):
        return asked
    job = run.writer.job
    if asked.job_id in (None, job.job_id):
        result = await read_result(run.writer, asked.step, asked.call)
    else:
        result = await run.services.histories.result(job, asked.job_id, asked.step, asked.call)
    return recalled(call.meant, result)


def noted_result(
    run: JobRun,
    step: int,
    call: Call,
    came: ToolReply | RepeatedResult | ToolChanged | SearchResult,
    *,
    program: str | None = None,
) -> list[Draft]:
    """Return what is noted of a reply: its call's end, another question whether it may be made, or its server's."""
    if isinstance(came, ToolChanged):
        return ask_again(run, call, came)
    if isinstance(came, SearchResult):
        return found(run, step, call, came)
    if isinstance(came, ToolReply) and came.input is not None:
        return [ask_input(run, call, came.input, program=program)]
    return [ended(run, step, call, came)]


def ended(run: JobRun, step: int, call: Call, reply: ToolReply | RepeatedResult) -> Draft:
    """Return a call's end; what a model is shown of it depends on what it is shown already."""
    wanted, span = call.meant, call.span
    named: dict[str, Any] = {"step": step, "call": wanted.call, "tool": wanted.tool}
    if isinstance(reply, RepeatedResult):
        return draft(e.ToolCompleted, span, **named, **reply.fields(wanted.tool))
    if reply.status == "unknown":
        assert call.key is not None
        decision_id = "-".join(call.key.split("/")[2:])
        return draft(e.ToolUnknown, span, **named, key=call.key, decision_id=decision_id, expires_at=expiry(run))
    reply = say_what_was_searched(run.writer.job, call, reply)
    return draft(
        e.ToolCompleted,
        span,
        **named,
        **_content(run, step, call, reply),
        status="success" if reply.status == "success" else "failed",
        citations=reply.citations,
        entities=reply.entities,
        duration_ms=reply.duration_ms,
        size_bytes=reply.size_bytes,
        tokens=reply.tokens,
        found=found_passages(run.writer.job, call, reply),
        **paid_tools.charged(run.writer.job, call, reply),
    )


def _content(run: JobRun, step: int, call: Call, reply: ToolReply) -> dict[str, Any]:
    """Return what a call's end says: to a program all of it, to a model what it can read."""
    if run.writer.job.code.call(call.wanted.call) is not None:
        words = words_of(run.writer.job.tools.definition(call.meant.tool), strangers=reply.strangers)
        return {"content": reply.content, "error": reply.error, "words": words}
    job, tool = run.writer.job, call.meant.tool
    tokens_max = result_room(job, run.services.result_tokens_max)
    return shown(job, tool, reply, step=step, call=call.wanted.call, tokens_max=tokens_max)


async def settle_calls(run: JobRun, action: SettleCalls) -> Iterable[Draft]:
    """Settle every open call in the ledger and return their ends: the job ends only after that.

    The log says first that this executor holds the job. Another cancel changes nothing; a drain hands the job back,
    and its next holder settles the same calls again.
    """
    await run.writer.append(Failpoint.EXECUTOR_INTENT_BEFORE, Failpoint.EXECUTOR_INTENT_AFTER)
    step = run.writer.job.model.step
    replies = await run.held.listening(_settle_all(run, action), cancellable=False)
    # The caller of the job may have given a result meanwhile: its call has ended with that.
    still = {call.wanted.call for call in begun_calls(run.writer.job)}
    settled = zip(action.calls, replies, strict=True)
    return (ended(run, step, call, reply) for call, reply in settled if call.wanted.call in still)


async def _settle_all(run: JobRun, action: SettleCalls) -> list[ToolReply]:
    return await asyncio.gather(*(_settled(run, call, action.why) for call in action.calls))


async def _settled(run: JobRun, call: Call, why: Literal["cancelled", "timeout", "diverged"]) -> ToolReply:
    """Return how an open call ended; a call that no registry was asked for ends here."""
    job = run.writer.job
    message = STOPPED_BECAUSE[why]
    code = "timeout" if why == "timeout" else "cancelled"
    own = UNREADABLE in call.meant.arguments or call.unloaded or call.meant.tool in (RECALL, RUN_CODE, TOOL_SEARCH)
    if own or job.tools.is_client(call) or answered_before(job, call) or refusal(job, call.meant):
        return ToolReply(status="failed", error=ToolError(code=code, message=message), begun=False, strangers=False)
    reply = await run.services.tools.void(job, call)
    if reply.input is not None:
        error = ToolError(code=code, message=f"{message}; it waited for input")
        return ToolReply(status="failed", error=error, strangers=False)
    if reply.error is None or reply.error.code != "cancelled":
        return reply
    definition = job.tools.definition(call.meant.tool)
    if definition is None or definition.effect is not Effect.READ:
        # Of a read no ledger knows whether it had begun.
        message = f"{message}: {reply.error.message}"
    return reply.model_copy(update={"error": ToolError(code=code, message=message)})


async def resolve(run: JobRun, action: Resolve) -> Iterable[Draft]:
    """Append a human's decision, then tell it the ledger; a result that arrived meanwhile wins."""
    assert action.call.decision is not None
    await run.writer.append(Failpoint.EXECUTOR_RESOLVE_BEFORE, Failpoint.EXECUTOR_RESOLVE_AFTER)
    try:
        # The registry may be away for long: a cancel is heard, and the process's end is not held up.
        reply = await run.held.listening(run.services.tools.resolve(run.writer.job, action.call, action.call.decision))
    except Cancelled:
        return ()
    return (ended(run, run.writer.job.model.step, action.call, reply),)
