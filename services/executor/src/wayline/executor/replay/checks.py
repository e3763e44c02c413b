"""How a recorded event is compared with what the executor's code decides or assembles at its place. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, Literal

import orjson

from wayline.contracts import events as e
from wayline.contracts.tools import RECALL
from wayline.executor.decide import actions as a
from wayline.executor.decide.approvals import arguments_of
from wayline.executor.decide.children import Task, task_of
from wayline.executor.decide.next_action import decide
from wayline.executor.decide.open_calls import is_program
from wayline.executor.decide.session_history import lost_note
from wayline.executor.prompt.assemble import PromptHashes, assemble
from wayline.executor.prompt.builtin_tools import refusal
from wayline.executor.prompt.cache_guard import cache_break
from wayline.executor.prompt.notes import GUIDANCE, guidance, reminder
from wayline.executor.prompt.tool_discovery import is_search
from wayline.executor.prompt.working_context import in_words, update
from wayline.journal import Job

_PARSERS_WORDS = re.compile(r"not JSON: .*?\.(?= Answer again)", re.DOTALL)
What = Literal["decision", "prompt", "note", "arguments", "result"]
SHOWN_MAX = 160
"""Characters of a value in the description of a difference."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What was recorded, and what the code does now."""

    what: What
    recorded: str
    now: str


@dataclass(slots=True)
class Place:
    """How far a replay is: the state before the event that is compared."""

    job: Job = field(default_factory=Job)
    hashes: PromptHashes = field(default_factory=PromptHashes)
    discovered: e.ToolsDiscovered | None = None
    """The event just before, where it was this."""
    lost: e.SessionContinued | None = None
    """The event just before, where it said that a history is lost."""
    note: str | None = None
    """The correction that belongs to the reroute just before."""
    kept: int | None = None
    """How many messages the summary under way leaves."""


def model_requested(place: Place, event: e.ModelRequested) -> Difference | None:
    """Compare the call and its prompt."""
    job = place.job
    action = decide(job)
    if not isinstance(action, a.CallModel) or (action.step, action.attempt) != (event.step, event.attempt):
        return decided(event, action)
    card = job.routing.card
    if (event.provider, event.model) != (card.provider, card.model):
        return Difference("decision", f"call {event.provider}/{event.model}", f"call {card.name}")
    return _prompt(place, event)


def _prompt(place: Place, event: e.ModelRequested) -> Difference | None:
    if not event.prefix:
        return None
    job = place.job
    prefix = place.hashes.segments(assemble(job, event.tools or job.tools.offered))
    elsewhere = _history_is_elsewhere(job)
    for recorded, now in zip(event.prefix, prefix, strict=True):
        if elsewhere and recorded.part == "messages":
            continue
        if (recorded.hash, recorded.count) != (now.hash, now.count):
            name = recorded.part
            return Difference("prompt", f"{name} {_segment(recorded)}", f"{name} {_segment(now)}")
    broken = event.cache_break if elsewhere else cache_break(job, prefix, place.hashes)
    if broken != event.cache_break:
        return Difference("prompt", f"cache break: {event.cache_break or 'none'}", f"cache break: {broken or 'none'}")
    return None


def _history_is_elsewhere(job: Job) -> bool:
    """Return whether the messages before the job are in the logs of its session's other jobs, and not at hand."""
    return job.session.history_end is not None and not job.conversation.history


def _segment(segment: e.Segment) -> str:
    return f"{segment.hash} of {segment.count}"


_ASIDE: dict[str, type[a.Action] | UnionType] = {
    "classification": a.Classify,
    "compaction": a.Compact,
    "summary": a.Summarize,
    "rewrite": a.Rewrite,
    "rerank": a.Rerank,
    "memory": a.ExtractFacts | a.SummarizeFacts,
}


def aux_requested(place: Place, event: e.AuxiliaryRequested) -> Difference | None:
    """Compare a question beside the conversation: which, and to whom."""
    action = decide(place.job)
    expected = _ASIDE.get(event.purpose)
    if expected is None or (event.purpose == "compaction" and _history_is_elsewhere(place.job)):
        return None
    if not isinstance(action, a.AsideAction) or not isinstance(action, expected):
        return decided(event, action)
    if isinstance(action, a.Summarize) and event.about != f"{place.job.model.step}/{action.call}":
        return Difference("decision", f"summarise {event.about}", f"summarise call {action.call}")
    if isinstance(action, a.Rewrite) and event.about != f"{place.job.model.step}/{action.call.wanted.call}":
        return Difference("decision", f"rewrite the query of {event.about}", f"of call {action.call.wanted.call}")
    if isinstance(action, a.Rerank) and event.about != f"{action.done.step}/{action.done.call}":
        return Difference("decision", f"rank {event.about}", f"rank {action.done.step}/{action.done.call}")
    card = action.card
    if card is None or (card.provider, card.model) != (event.provider, event.model):
        return Difference("decision", f"ask {event.provider}/{event.model}", f"ask {card.name if card else 'nobody'}")
    place.kept = action.kept if isinstance(action, a.Compact) else None
    return None


def compacted(place: Place, event: e.ContextCompacted) -> Difference | None:
    """Compare how much of the conversation a summary leaves, and what is known; its own words are a model's."""
    kept, place.kept = place.kept, None
    if kept is not None and kept != event.kept:
        return Difference("decision", f"keep the last {event.kept} messages", f"keep the last {kept}")
    known, text = in_words(place.job.working_context), event.note.text
    return None if text.endswith(f"\n\n{known}") or not known else _same("note", text.rpartition("\n\n")[2], known)


def rerouted(place: Place, event: e.JobRerouted) -> Difference | None:
    """Compare which model goes on."""
    action = decide(place.job)
    if isinstance(action, a.CallModel):
        # A model that could not be called, or a budget without room: no event says so beforehand.
        return None
    if not isinstance(action, a.Reroute):
        return decided(event, action)
    place.note = action.note
    recorded, now = (event.route.name, event.cause), (action.route.name, action.cause)
    return None if recorded == now else Difference("decision", f"go on with {recorded}", f"go on with {now}")


def injected(place: Place, event: e.ContextInjected) -> Difference | None:
    """Compare what the platform tells the model."""
    note, place.note = place.note, None
    if event.note.label == "CORRECTION":
        if note is None:
            action = decide(place.job)
            if not isinstance(action, a.Correct):
                return decided(event, action)
            note = action.text
        # In which words a parser says where JSON ends differs from one release of it to the next.
        return _same("note", *(_PARSERS_WORDS.sub("not JSON.", text) for text in (event.note.text, note)))
    if event.note.label == GUIDANCE and place.discovered is not None:
        return _same("note", event.note.text, guidance(place.job, place.discovered.tools).text)
    if event.note.label == "CONTEXT" and place.lost is not None:
        return _same("note", event.note.text, lost_note(place.lost.lost or "", place.lost.context).text)
    if event.note.label == "CONTEXT UPDATE":
        entities = update(place.job)
        return _same("note", event.note.text, entities.text if entities else "nothing")
    if event.note.label == "AVAILABLE TOOLS":
        names = reminder(place.job)
        return _same("note", event.note.text, names.text if names else "nothing")
    return None


def tool_requested(place: Place, event: e.ToolRequested) -> Difference | None:
    """Compare a tool call with what the model wanted."""
    if event.program is not None:
        # Its program asked for it, and a program is not run again here.
        return None
    action = decide(place.job)
    calls = action.calls if isinstance(action, a.RunTools | a.GiveOut | a.StartChildren) else ()
    if isinstance(action, a.RunProgram):
        calls = (action.call,)
    call = next((call for call in calls if call.wanted.call == event.call), None)
    if call is None:
        return decided(event, action)
    if call.meant.tool != event.tool:
        return Difference("decision", f"call {event.tool}", f"call {call.meant.tool}")
    now = arguments_of(place.job, call)
    return None if now == event.arguments else Difference("arguments", _shown(event.arguments), _shown(now))


def approval_requested(place: Place, event: e.ApprovalRequested) -> Difference | None:
    """Compare what people are asked to approve; what the registry refused as changed was decided there."""
    asked = next((call for call in place.job.tools.calls if call.wanted.call == event.call), None)
    if asked is None or asked.key is not None:
        return None
    action = decide(place.job)
    if not isinstance(action, a.AskApproval) or asked not in action.calls:
        return decided(event, action)
    now = arguments_of(place.job, asked)
    return None if now == event.arguments else Difference("arguments", _shown(event.arguments), _shown(now))


def tool_completed(place: Place, event: e.ToolCompleted) -> Difference | None:
    """Compare whether the executor itself refuses the call."""
    call = next((call for call in place.job.tools.calls if call.wanted.call == event.call and not call.done), None)
    if call is None or place.job.routing.config is None:
        return None
    if call.meant.tool == RECALL or is_program(place.job, call) or is_search(place.job, call.meant):
        # The executor answers these by itself, whatever tools the agent may use.
        return None
    refused = refusal(place.job, call.meant)
    if refused is None or refused.error is None or event.status != "success":
        return None
    return Difference("result", f"{event.tool} answers", f"{event.tool} is refused: {refused.error.message}")


def child_started(place: Place, event: e.ChildStarted) -> Difference | None:
    """Compare which agent a call starts."""
    action = decide(place.job)
    calls = action.calls if isinstance(action, a.StartChildren) else ()
    call = next((call for call in calls if call.wanted.call == event.call), None)
    if call is None:
        return decided(event, action)
    task = task_of(place.job, call)
    now = task.agent if isinstance(task, Task) else "nobody"
    return None if now == event.agent else Difference("decision", f"start {event.agent}", f"start {now}")


def parked(place: Place, event: e.JobParked) -> Difference | None:
    """Compare what a job waits for."""
    if event.waiting.why not in ("needs_decision", "budget", "approval", "children", "tool_results"):
        return None
    action = decide(place.job)
    if event.waiting.children:
        return None if isinstance(action, a.AwaitChildren | a.StopChildren) else decided(event, action)
    if isinstance(action, a.Park):
        recorded, now = event.waiting, action.waiting
        same = (recorded.why, recorded.wait_id) == (now.why, now.wait_id)
        return None if same else Difference("decision", f"wait for {recorded.wait_id}", f"wait for {now.wait_id}")
    paid = a.CallModel | a.ExtractFacts | a.SummarizeFacts
    return None if isinstance(action, paid) and event.waiting.why == "budget" else decided(event, action)


def ended(place: Place, event: e.JobCompleted | e.JobFailed | e.JobCancelled) -> Difference | None:
    """Compare how a job ends. What nobody decided from the log is not compared: a refusal, a dry run, a crash loop."""
    if place.job.life.epoch == 0 or (isinstance(event, e.JobFailed) and event.error.code == "crash_loop"):
        return None
    action = decide(place.job)
    match action, event:
        case a.CallModel(), e.JobFailed() | e.JobCompleted(partial=True):
            # What stood in the way of the call is in no event before.
            return None
        case a.Complete(), e.JobCompleted():
            return _same_answer(event, action)
        case a.Fail(), e.JobFailed() if action.error.code != event.error.code:
            return Difference("decision", f"fail: {event.error.code}", f"fail: {action.error.code}")
        case (a.Fail(), e.JobFailed()) | (a.Cancel(), e.JobCancelled()):
            return None
        case _:
            return decided(event, action)


def _same_answer(event: e.JobCompleted, action: a.Complete) -> Difference | None:
    if (event.answer, event.partial) == (action.answer, action.partial):
        return None
    kind = {True: "a partial answer", False: "the answer"}
    recorded = f"{kind[event.partial]} {_cut(event.answer)!r}"
    return Difference("decision", recorded, f"{kind[action.partial]} {_cut(action.answer)!r}")


def decided(event: e.Event, action: a.Action | None) -> Difference:
    """Return the difference between an event and an action that does not lead to it."""
    now = "nothing" if action is None else type(action).__name__
    if isinstance(action, a.CallModel):
        now = f"call the model for step {action.step}, attempt {action.attempt}"
    return Difference("decision", event.type, now)


def _same(what: What, recorded: str, now: str) -> Difference | None:
    return None if recorded == now else Difference(what, repr(_cut(recorded)), repr(_cut(now)))


def _shown(value: Any) -> str:
    return _cut(orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode())


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_MAX else f"{text[: SHOWN_MAX - 1]}…"


CHECKS: dict[type[e.Event], Callable[[Place, Any], Difference | None]] = {
    e.ModelRequested: model_requested,
    e.AuxiliaryRequested: aux_requested,
    e.ContextCompacted: compacted,
    e.JobRerouted: rerouted,
    e.ContextInjected: injected,
    e.ToolRequested: tool_requested,
    e.ChildStarted: child_started,
    e.ToolCompleted: tool_completed,
    e.ApprovalRequested: approval_requested,
    e.JobParked: parked,
    e.JobCompleted: ended,
    e.JobFailed: ended,
    e.JobCancelled: ended,
}
"""Events that the executor's own code leads to; every other one came from outside and is taken as it was recorded."""
