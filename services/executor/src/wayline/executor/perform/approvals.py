"""Asks people to approve tool calls, and tells the model of those that were denied."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from wayline.chassis import Failpoint
from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.framed_words import framed
from wayline.contracts.tools import InputRequest, ToolDefinition, ToolError
from wayline.executor.decide import approvals as rules
from wayline.executor.decide.actions import AskApproval, EndDenied
from wayline.executor.hold.log_writer import Draft, draft
from wayline.executor.perform.job_run import JobRun
from wayline.executor.perform.park_or_end import expiry
from wayline.executor.prompt.shorten import cut
from wayline.journal import Call, Job, words_of

QUOTED_BYTES_MAX = 2_000
"""Of what a tool's server said when it asked a person."""


@dataclass(frozen=True, slots=True)
class ToolChanged:
    """The end of an attempt at a call: its tool is not what was approved, or needs an approval; nothing has begun."""

    definition: ToolDefinition | None
    """The tool as it is now; None: it is gone."""


async def ask_approval(run: JobRun, action: AskApproval) -> Iterable[Draft]:
    """Append what people are asked, before anything of the step runs."""
    for call in action.calls:
        definition = run.writer.job.tools.definition(call.meant.tool)
        run.writer.note_all([requested(run, call, definition)])
    await run.writer.append(Failpoint.EXECUTOR_APPROVAL_BEFORE, Failpoint.EXECUTOR_APPROVAL_AFTER)
    return ()


async def end_denied(run: JobRun, action: EndDenied) -> Iterable[Draft]:
    """End calls that nobody approved: the model reads why."""
    return [denied(run.writer.job, call) for call in action.calls]


def denied(job: Job, call: Call) -> Draft:
    """Return the end of a call that nobody approved."""
    approval = job.tools.approval(call.wanted.call)
    asked = approval is not None and approval.asked.input is not None
    # What a tool's server asked is in its own words.
    return failed(job, call, "denied", _denial(job, call), strangers=None if asked else False)


def ask_again(run: JobRun, call: Call, changed: ToolChanged) -> list[Draft]:
    """Return what becomes of a call whose tool has changed: it is asked for anew, by the definition that there is."""
    job, definition, tool = run.writer.job, changed.definition, call.meant.tool
    if definition is None:
        return [failed(job, call, "unknown_tool", f"there is no tool {tool!r} any more")]
    if wrong := rules.arguments_problem(definition, rules.arguments_of(job, call)):
        # It quotes the schema, which is the server's.
        return [failed(job, call, "invalid_arguments", f"{tool}: {wrong}", strangers=None)]
    told = [] if definition == job.tools.definition(tool) else [draft(e.ToolsDiscovered, tools=(definition,))]
    if told and rules.cause(job, definition) is None and job.tools.approval(call.wanted.call) is None:
        # A read of which the job did not know that it is one: now it does, and the call goes on.
        return told
    return [*told, requested(run, call, definition)]


def ask_input(run: JobRun, call: Call, asked: InputRequest, *, program: str | None = None) -> Draft:
    """Return the question of a tool's server to a person, bound to the call as it was made."""
    definition = run.writer.job.tools.definition(call.meant.tool)
    return requested(run, call, definition, program=program, asked=asked)


def requested(
    run: JobRun,
    call: Call,
    definition: ToolDefinition | None,
    *,
    program: str | None = None,
    asked: InputRequest | None = None,
) -> Draft:
    """Return the question whether a call may be made, bound to all that it rests on."""
    job, tool = run.writer.job, call.meant.tool
    asked_before = job.tools.approval(call.wanted.call)
    why = rules.cause(job, definition) or (asked_before.asked.why if asked_before else "tool")
    digest, policy = definition.digest if definition else "", rules.policy_version(job)
    arguments = rules.arguments_of(job, call)
    bound_to = rules.approval_hash(digest, arguments, policy)
    return draft(
        e.ApprovalRequested,
        _span(job, call),
        approval_id=rules.approval_id(job, call.wanted.call, bound_to),
        step=job.model.step,
        call=call.wanted.call,
        tool=tool,
        arguments=arguments,
        definition=digest,
        policy=policy,
        hash=bound_to,
        why=why,
        reason=rules.question_of(asked) if asked is not None else rules.reason(job, tool, why),
        expires_at=expiry(run),
        program=program,
        input=asked,
        given=None if program is None or arguments == call.meant.arguments else call.meant.arguments,
    )


def failed(job: Job, call: Call, code: Any, message: str, *, strangers: bool | None = False) -> Draft:
    """Return the end of a call that was not made; `strangers`: whether it says words of theirs, None: as its tool's."""
    tool = call.meant.tool
    named = {"step": job.model.step, "call": call.wanted.call, "tool": tool}
    words = words_of(job.tools.definition(tool), strangers=strangers)
    if words == "strangers" and job.code.call(call.wanted.call) is None:
        message = framed(tool, message)
    error = ToolError(code=code, message=message)
    return draft(e.ToolCompleted, _span(job, call), **named, status="failed", error=error, words=words)


def _span(job: Job, call: Call) -> str:
    return ids.tool_span(job.tenant, job.job_id, job.model.step, call.wanted.call)


def _denial(job: Job, call: Call) -> str:
    """Return what the model is told of a call that was not approved."""
    approval = job.tools.approval(call.wanted.call)
    assert approval is not None and approval.decided is not None
    reason = f": {approval.decided.reason}" if approval.decided.reason else ""
    if approval.asked.input is not None:
        asked = approval.asked.input
        who = "nobody answered in time" if approval.decided.decision == "expired" else "a person declined to answer"
        if asked.after_cancel is None:
            return f"the tool asked for input ({_quoted(asked.message)}) and {who}, so it was not done{reason}"
        ended = f"it ended without an answer, and said: {_quoted(asked.after_cancel)!r}"
        return f"the tool asked for input ({_quoted(asked.message)}) and {who}{reason}; {ended}"
    if approval.decided.decision == "expired":
        return "nobody approved this call in time, so it was not made"
    return f"a person denied this call, so it was not made{reason}"


def _quoted(words: str) -> str:
    """Return what a server said, as much of it as a model is shown."""
    return cut(words, QUOTED_BYTES_MAX)
