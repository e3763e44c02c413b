"""Calls of tools that the job's caller runs: what it is asked for, and what its results mean. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from wayline.contracts.events import ToolCompleted
from wayline.contracts.jobs import (
    SECONDS_MAX,
    Expire,
    PendingToolCall,
    ToolResult,
    ToolResults,
    Waiting,
    result_wait_id,
)
from wayline.contracts.tools import Effect, ToolDefinition, ToolError, ToolReply
from wayline.executor.decide.approvals import arguments_of, arguments_problem
from wayline.executor.hold.log_writer import Draft, draft
from wayline.executor.prompt.context_window import result_room
from wayline.executor.prompt.shorten import shown
from wayline.journal import Call, Job
from wayline.llm.tokens import estimate

TOO_LATE = "the application that runs this tool gave no result in time"


def client_definitions(job: Job) -> tuple[ToolDefinition, ...]:
    """Return the tools that the job's caller brings along, as the model is told of them."""
    given = job.life.submitted.options.client_tools if job.life.submitted else None
    if not given or not job.tools.client:
        return ()
    return tuple(tool.definition() for tool in given if tool.name in job.tools.client)


def expires_at(job: Job, now: datetime, *, at_most_s: float) -> datetime:
    """Return until when the result of a call is waited for that is given out now."""
    assert job.life.created_at is not None and job.life.submitted is not None
    within_s = job.life.submitted.options.tool_results_within_s
    last = job.life.created_at + timedelta(seconds=SECONDS_MAX)
    return min(now + timedelta(seconds=at_most_s if within_s is None else within_s), last)


def misfit_of(job: Job, call: Call) -> ToolReply | None:
    """Return the end of a call whose arguments its tool does not take; None: it takes them."""
    problem = arguments_problem(job.tools.definition(call.meant.tool), arguments_of(job, call))
    if problem is None:
        return None
    error = ToolError(code="invalid_arguments", message=f"{call.meant.tool}: {problem}")
    return ToolReply(status="failed", error=error, strangers=False)


def pending_calls(job: Job) -> tuple[PendingToolCall, ...]:
    """Return the calls that wait for results, as a parked job shows them."""
    return tuple(
        PendingToolCall(
            key=call.key,
            step=job.model.step,
            call=call.wanted.call,
            tool=call.meant.tool,
            arguments=arguments_of(job, call),
            expires_at=call.expires_at,
        )
        for call in job.tools.given_out
        if call.key is not None and call.expires_at is not None
    )


def waiting_for_results(calls: tuple[PendingToolCall, ...]) -> Waiting:
    """Return the wait for results; what stands outside of their list is of the first."""
    first = calls[0]
    return Waiting(
        why="tool_results",
        wait_id=first.wait_id,
        tool=first.tool,
        arguments=first.arguments,
        expires_at=first.expires_at,
        tool_calls=calls,
    )


def end_calls(job: Job, heard: ToolResults | Expire, *, tokens_max: int) -> list[Draft]:
    """Return the ends of the calls that results are of, or whose time is over; a call that waits for none has none."""
    if isinstance(heard, Expire):
        return [_late(job, call) for call in job.tools.given_out if _wait_id(job, call) == heard.wait_id]
    waiting, ends = {call.key: call for call in job.tools.given_out}, list[Draft]()
    for result in heard.results:
        call = waiting.pop(result.key, None)
        if call is not None:
            ends.append(_end(job, call, _reply(result), tokens_max=tokens_max, given=result.digest))
    return ends


def _wait_id(job: Job, call: Call) -> str:
    return result_wait_id(job.model.step, call.wanted.call)


def _late(job: Job, call: Call) -> Draft:
    reply = ToolReply(status="failed", error=ToolError(code="timeout", message=TOO_LATE), strangers=False)
    return _end(job, call, reply, tokens_max=0)


def _reply(result: ToolResult) -> ToolReply:
    size, tokens = len(result.content.encode()), estimate(result.content)
    told: dict[str, Any] = {"size_bytes": size, "tokens": tokens, "effect": Effect.ONCE}
    if not result.failed:
        return ToolReply(status="success", content=result.content, **told)
    return ToolReply(
        status="failed", error=ToolError(code="tool_failed", message=result.content or "it failed"), **told
    )


def _end(job: Job, call: Call, reply: ToolReply, *, tokens_max: int, given: str | None = None) -> Draft:
    step, number, tool = job.model.step, call.wanted.call, call.meant.tool
    room = result_room(job, tokens_max)
    return draft(
        ToolCompleted,
        call.span,
        step=step,
        call=number,
        tool=tool,
        **shown(job, tool, reply, step=step, call=number, tokens_max=room),
        status="success" if reply.status == "success" else "failed",
        size_bytes=reply.size_bytes,
        tokens=reply.tokens,
        cost_usd=None,
        given=given,
    )
