"""Whether a tool call needs a person's approval, and whether it has one. Pure, for models and programs alike."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Any, NamedTuple

import orjson

from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import ToolCall
from wayline.contracts.events import ApprovalDecided, ApprovalRequested
from wayline.contracts.jobs import ApprovalCause, DecideApproval, PendingApproval
from wayline.contracts.jobs.waiting import DESCRIPTION_SHOWN_MAX
from wayline.contracts.tools import (
    BUILTIN,
    MEMORY_WRITES,
    RUN_AGENT,
    Ask,
    Effect,
    InputAnswer,
    InputRequest,
    ToolDefinition,
)
from wayline.executor.hold.log_writer import Draft, draft
from wayline.executor.prompt.builtin_tools import OWN, refusal
from wayline.journal import Approval, Call, Job
from wayline.llm.broken_json.tool_arguments import UNREADABLE, fit
from wayline.llm.structured import value_problem

RULES_VERSION = "1"
"""Of the rules in this file: approvals that were asked for by others are asked for again."""


_UNASKED = OWN - {RUN_AGENT}


class ApprovalState(StrEnum):
    """What an approval, or the need of one, allows a call that has not begun."""

    FREE = "free"
    """It needs none."""
    NEEDED = "needed"
    """It needs one and has none that holds."""
    WAITING = "waiting"
    GRANTED = "granted"
    DENIED = "denied"
    """Denied, or nobody decided in time."""


def standing(job: Job, call: ToolCall, arguments: dict[str, Any]) -> ApprovalState:
    """Return how a call stands that would be made now with these arguments; one that has begun is past this.

    An approval holds for one call, and only while definition, arguments and policy hash as they did when it was given.
    """
    approval = job.tools.approval(call.call)
    if approval is None or approval.spent:
        return ApprovalState.NEEDED if _is_needed(job, call, arguments) else ApprovalState.FREE
    if approval.decided is None:
        return ApprovalState.WAITING
    if approval.decided.decision != "approved":
        return ApprovalState.DENIED
    return ApprovalState.GRANTED if _holds(job, approval) else ApprovalState.NEEDED


MAY_RUN = frozenset({ApprovalState.FREE, ApprovalState.GRANTED})


def stands(job: Job, call: Call) -> ApprovalState:
    """Return how an open call of the step stands: one that has begun is free to go on, one that is to run again is not.

    A call whose outcome a human must decide waits, too.
    """
    if call.undecided:
        return ApprovalState.WAITING
    if call.unloaded:
        # It is not made, whatever is known of its tool by now.
        return ApprovalState.FREE
    if not needs_new_intent(job, call):
        return ApprovalState.FREE
    wanted = call.meant
    if not job.tools.approvals and cause(job, job.tools.definition(wanted.tool)) is None:
        # Nobody is asked, whatever it is made with.
        return ApprovalState.FREE
    return standing(job, wanted, arguments_of(job, call))


def arguments_of(job: Job, call: Call) -> dict[str, Any]:
    """Return what a call is made with: as it was approved, else as the model said, with plainly wrong types mended.

    What cannot be mended is the registry's to refuse, by its name. A follow-up's search is made with the query that
    was written for it.
    """
    approval = job.tools.approval(call.wanted.call)
    if approval is not None:
        return approval.arguments
    wanted = call.meant
    definition = job.tools.definition(wanted.tool)
    arguments = fit(wanted.arguments, definition.input_schema) if definition else wanted.arguments
    if call.rewritten is not None and call.rewritten.rewritten:
        return {**arguments, "query": call.rewritten.query}
    return arguments


def digest_to_call(job: Job, number: str, tool: str) -> str | None:
    """Return the digest of the definition for which a call has its approval; None: it needs none.

    A tool that the job was never told of may need one, and only the registry knows it: the empty digest is none's, so
    that the registry answers with a refusal, after which the tool is known.
    """
    approval = job.tools.approval(number)
    if approval is not None:
        # Of a tool that the job was never told of, what its server asks is asked without a definition.
        return approval.asked.definition or (None if approval.asked.input is not None else "")
    config = job.routing.config
    if config is None or job.tools.definition(tool) is not None:
        return None
    tainted = job.tools.tainted_by is not None and any(taint_policy(job))
    return "" if tainted or ask_of_agent(config, tool) != "never" else None


def misfit(job: Job, call: Call) -> str | None:
    """Return the digest of the definition by which a call needs no approval only because it is to be refused.

    The definition may be old: by another schema the arguments may be right, and then a person has to be asked.
    """
    definition = job.tools.definition(call.meant.tool)
    if job.tools.approval(call.wanted.call) is not None or cause(job, definition) is None:
        return None
    return (
        definition.digest_of_description
        if definition and arguments_problem(definition, arguments_of(job, call))
        else None
    )


def pending_approval(job: Job, asked: ApprovalRequested) -> PendingApproval:
    """Return an approval as a parked job shows it."""
    definition = job.tools.definition(asked.tool)
    return PendingApproval(
        approval_id=asked.approval_id,
        call=asked.call,
        tool=asked.tool,
        arguments=asked.arguments,
        why=asked.why,
        reason=asked.reason,
        expires_at=asked.expires_at,
        asked_at=asked.at,
        hash=asked.hash,
        effect=definition.effect if definition else None,
        description=definition.description[:DESCRIPTION_SHOWN_MAX] if definition else "",
        program=asked.program,
        given=asked.given,
        input_schema=asked.input.input_schema if asked.input is not None else None,
    )


def answer_to_call(job: Job, number: str) -> InputAnswer | None:
    """Return what a person answered to a tool's server that had asked for input."""
    approval = job.tools.approval(number)
    if approval is None or approval.asked.input is None or approval.decided is None or approval.decided.answer is None:
        return None
    asked, answer = approval.asked.input, approval.decided.answer
    answers = {asked.keys[0]: answer} if len(asked.keys) == 1 else {key: answer[key] for key in asked.keys}
    return InputAnswer(answers=answers, state=asked.state)


def needs_new_intent(job: Job, call: Call) -> bool:
    """Return whether a call is to be made under another key, or for the first time.

    A human's «do it again» is a new key, and so is an approval of what an earlier key was refused for.
    """
    again = call.decision is not None and call.decision.outcome == "retry"
    approval = job.tools.approval(call.wanted.call)
    return call.key is None or again or (approval is not None and not approval.spent)


def cause(job: Job, definition: ToolDefinition | None) -> ApprovalCause | None:
    """Return why a call of a tool needs an approval; None: it needs none."""
    config = job.routing.config
    if definition is None or config is None or definition.name in _UNASKED:
        # The registry makes no call of a tool that asks for approvals without the digest that was approved.
        return None
    if _asks(definition.ask, definition.effect):
        return "tool"
    if _asks(ask_of_agent(config, definition.name), definition.effect):
        return "agent"
    if job.tools.tainted_by is None:
        return None
    # A job that this one starts is tainted with it, and asks for itself.
    acts = definition.effect is not Effect.READ and definition.name != RUN_AGENT and not _is_set_aside(definition)
    when = taint_policy(job)
    return "tainted" if (when.acts and acts) or (when.egress and definition.is_egress) else None


def _is_set_aside(definition: ToolDefinition) -> bool:
    """Return whether what a tainted job does with a tool waits for a person anyway: a memory is set aside."""
    return definition.name in MEMORY_WRITES and definition.server == BUILTIN


class TaintPolicy(NamedTuple):
    """Which calls of a tainted job a person must approve."""

    acts: bool
    """Those of tools that do more than read."""
    egress: bool
    """Those whose arguments may reach strangers."""


def taint_policy(job: Job) -> TaintPolicy:
    """Return the stricter of the policies of a job's agent and of the jobs above it: a child is no way around them."""
    config, above = job.routing.config, job.family.parent
    return TaintPolicy(
        acts=bool((config and config.ask_when_tainted) or (above and above.ask_when_tainted)),
        egress=bool((config and config.ask_egress) or (above and above.ask_egress)),
    )


def ask_of_agent(config: AgentConfig, tool: str) -> Ask:
    """Return when an agent wants calls of a tool approved: by the longest pattern that fits, else as for all."""
    fitting = [pattern for pattern in config.ask_tools if fnmatchcase(tool, pattern)]
    return config.ask_tools[max(fitting, key=len)] if fitting else config.ask


def reason(job: Job, tool: str, why: ApprovalCause) -> str:
    """Return why an approval is needed, in a sentence for the person who decides."""
    if why == "tool":
        return f"{tool} asks for an approval of each call"
    if why == "agent":
        return f"the agent's policy asks for an approval of {tool}"
    definition = job.tools.definition(tool)
    reads = definition is not None and definition.effect is Effect.READ
    could = "can carry data out" if reads else "has an effect"
    return f"the job has read what {job.tools.tainted_by} returned, which is not trusted, and {tool} {could}"


def question_of(asked: InputRequest) -> str:
    """Return what a tool's server asks, with what an answer to it does where that is not plain."""
    if asked.after_cancel is None:
        return asked.message
    return (
        f"{asked.message} [An older server, which cannot wait: the question was cancelled, and the tool said: "
        f"{asked.after_cancel!r}. Your answer calls it again from its beginning.]"
    )


def policy_version(job: Job) -> str:
    """Return the version of the rules and of the agent by which approvals are asked for."""
    return f"{RULES_VERSION}/{job.routing.agent_version}"


def digest_of(job: Job, tool: str) -> str:
    """Return the digest of a tool's definition as the job knows it; empty where it knows none."""
    definition = job.tools.definition(tool)
    return definition.digest if definition else ""


def approval_hash(definition: str, arguments: dict[str, Any], policy: str) -> str:
    """Return what an approval is bound to."""
    bound = orjson.dumps([definition, arguments, policy], option=orjson.OPT_SORT_KEYS)
    return sha256(bound).hexdigest()[:32]


def approval_id(job: Job, number: str, bound_to: str) -> str:
    """Return the id of the next approval of a call: a decision on an earlier one, or on other arguments, never fits."""
    nth = sum(one.asked.call == number for one in job.tools.approvals) + 1
    return f"{job.model.step}-{number}-{nth}-{bound_to[:12]}"


def decision_problem(job: Job, asked: ApprovalRequested, arguments: dict[str, Any] | None) -> str | None:
    """Return what is wrong with what an approver gives: other arguments, or the answer to a server; None: nothing."""
    if arguments is None and asked.input is None:
        return None
    return value_problem(job.tools.decision_schema(asked), arguments or {})


def judge_decision(job: Job, heard: DecideApproval, stored_at: datetime) -> Draft | str | None:
    """Return what a decision means for the approval that it names, or what is wrong with it; None: nothing waits.

    `stored_at`: when the bus took it, whenever it is read.
    """
    asked = next((one for one in job.tools.pending if one.approval_id == heard.approval_id), None)
    if asked is None:
        return None
    if stored_at > asked.expires_at:
        # The schedule that says so may be on its way.
        return draft(ApprovalDecided, approval_id=asked.approval_id, decision="expired")
    if heard.hash is not None and heard.hash != asked.hash:
        return "it is about something else than what is asked"
    decided = {"approval_id": asked.approval_id, "by": heard.by}
    if heard.decision == "deny":
        return draft(ApprovalDecided, **decided, decision="denied", reason=heard.reason)
    wrong = decision_problem(job, asked, heard.arguments)
    if wrong is not None:
        return wrong
    edited = heard.arguments if asked.input is None else None
    answer = None if asked.input is None else heard.arguments or {}
    bound_to = approval_hash(asked.definition, asked.arguments if edited is None else edited, asked.policy)
    return draft(ApprovalDecided, **decided, decision="approved", arguments=edited, answer=answer, hash=bound_to)


def arguments_problem(definition: ToolDefinition | None, arguments: dict[str, Any]) -> str | None:
    """Return what a tool's schema says against arguments, field by field; None: they are valid."""
    if definition is None:
        return None
    return value_problem(definition.input_schema, arguments)


def _is_needed(job: Job, call: ToolCall, arguments: dict[str, Any]) -> bool:
    """Return whether a person must be asked: not for a call that will be refused anyway."""
    definition = job.tools.definition(call.tool)
    if cause(job, definition) is None or UNREADABLE in arguments or refusal(job, call) is not None:
        return False
    return arguments_problem(definition, arguments) is None


def _holds(job: Job, approval: Approval) -> bool:
    assert approval.decided is not None
    now = approval_hash(digest_of(job, approval.asked.tool), approval.arguments, policy_version(job))
    return approval.decided.hash == now


def _asks(ask: Ask, effect: Effect) -> bool:
    return ask == "always" or (ask == "writes" and effect is not Effect.READ)
