"""Where a job branches off another one: what of the other's log it begins with. Pure.

What is shared is copied into the fork's first record and not referred to. So every reader of a log stays as it is, a
fork outlives its origin, and its size is bounded; the hash says that the origin's log begins with the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson

from wayline.contracts import events as e
from wayline.contracts.chat import Part
from wayline.contracts.jobs import Fork, Origin
from wayline.journal.folding import fold
from wayline.journal.forked_calls import ForkRefused, SharedEvents, shared_before_failure, shared_until
from wayline.journal.forked_memories import INJECTED, told_at, without_facts
from wayline.journal.state import Job

Value = dict[str, Any]

PREFIX_MAX_BYTES = 8 * 1024 * 1024
"""Of what a fork shares with its origin; a longer conversation is compacted long before."""
_OWN_LIFE = frozenset(
    {
        "job.routed",
        "job.forked",
        "client_tools.given",
        "extraction.asked",
        "summary.asked",
        "job.claimed",
        "job.handed_back",
        "job.parked",
        "job.resumed",
        "job.cancel_requested",
        "child.started",
        "code.suspended",
        "budget.raised",
        *e.TERMINAL_TYPES,
    }
)
"""Events of a job's own life: a fork has its own."""


@dataclass(frozen=True, slots=True)
class Branch:
    """What a fork begins with."""

    origin: Origin
    prefix: tuple[Value, ...]
    submitted: e.JobSubmitted
    routed: e.JobRouted | None
    """How the origin was routed; None: it was refused before."""
    job: Job
    """The origin's state there."""


def branch(values: Sequence[Value], fork: Fork, parts: tuple[Part, ...] | None = None) -> Branch:
    """Return what a fork shares with its origin, of which `values` is the whole log so far.

    `parts`: the fork's input, None for the origin's own. Raises ForkRefused.
    """
    events = [e.read_event(value) for value in values]
    submitted = events[0]
    if not isinstance(submitted, e.JobSubmitted):
        raise ForkRefused("the log of the job that it branches off does not begin with its submission any more")
    if unknown := {event.type for event in events if isinstance(event, e.Unknown)}:
        raise ForkRefused(f"a newer version wrote events that this one does not know: {sorted(unknown)}")
    taken = _shared(events, fork)
    after = taken.after
    shared = [value for value in values if taken.holds(value["seq"])]
    job = fold(e.read_event(value) for value in shared)
    prefix = _flat(_changed(shared, fork, after))
    told = any(value["type"] == "model.requested" for value in prefix)
    other_input = parts is not None and parts != submitted.job.parts()
    if not told and (other_input or not any(value["type"] == INJECTED for value in prefix)):
        # Nobody has been told anything yet: it begins with its own input.
        prefix = ()
    elif other_input:
        raise ForkRefused(
            "another input would edit what the model was told: fork after event 2, or with another tool result"
        )
    size = sum(len(orjson.dumps(value)) for value in prefix)
    if size > PREFIX_MAX_BYTES:
        raise ForkRefused(f"it would share {size} bytes, and may share {PREFIX_MAX_BYTES}: fork after an earlier event")
    routed = next((event for event in events if isinstance(event, e.JobRouted)), None)
    origin = Origin(job_id=submitted.job_id, seq=after, hash=prefix_hash(values, after))
    return Branch(origin, prefix, submitted, routed, job)


def prefix_hash(values: Sequence[Mapping[str, Any]], upto: int) -> str:
    """Return the hash of a log's events up to one of them."""
    shared = (orjson.dumps(value, option=orjson.OPT_SORT_KEYS) for value in values if value["seq"] <= upto)
    return sha256(b"\n".join(shared)).hexdigest()[:32]


def _flat(values: Sequence[Value]) -> tuple[Value, ...]:
    """Return the events that make the conversation; those that a fork shares with its own origin come first."""
    forked = next((value for value in values if value["type"] == "job.forked"), None)
    kept = [value for value in values if value["type"] not in _OWN_LIFE]
    if forked is None or not forked["prefix"]:
        return tuple(kept)
    return (*forked["prefix"], *(value for value in kept if value["type"] != "job.submitted"))


def _shared(events: Sequence[e.Event], fork: Fork) -> SharedEvents:
    """Return which events of its origin a fork shares."""
    if fork.after is None and fork.without_memory:
        return shared_until(events, told_at(events, fork.without_memory))
    if fork.after is None:
        return shared_before_failure(events)
    if fork.after > len(events):
        raise ForkRefused(f"after event {fork.after}: the job has {len(events)} events so far")
    return shared_until(events, fork.after)


def _changed(values: Sequence[Value], fork: Fork, after: int) -> list[Value]:
    """Return what is shared with the changes that the fork asks for."""
    changed = list(values)
    at = next((n for n, value in enumerate(changed) if value["seq"] == after), None)
    if fork.arguments is not None:
        if at is None or changed[at]["type"] != "model.completed":
            raise ForkRefused(f"event {after} is no `model.completed` with the calls {sorted(fork.arguments)}")
        changed[at] = _with_arguments(changed[at], fork.arguments)
    if fork.tool_result is not None:
        if at is None or changed[at]["type"] != "tool.completed":
            raise ForkRefused(f"event {after} is no `tool.completed`: another tool result takes the place of one")
        failed, text = fork.tool_result.failed, fork.tool_result.content
        changed[at] = changed[at] | {
            "content": "" if failed else text,
            "full": None,
            "images": [],
            "citations": [],
            "status": "failed" if failed else "success",
            "error": {"code": "tool_failed", "message": text} if failed else None,
        }
    if fork.without_memory:
        changed = without_facts(changed, fork.without_memory)
    if fork.prompt is not None or fork.without_memory:
        # A provider's own blocks are bound to the prompt that stood before them.
        changed = [_unbound(value) for value in changed]
    return changed


def _with_arguments(value: Value, arguments: Mapping[str, Mapping[str, Any]]) -> Value:
    calls = value["message"].get("tool_calls", [])
    if missing := arguments.keys() - {call["call"] for call in calls}:
        raise ForkRefused(f"event {value['seq']} is no `model.completed` with the calls {sorted(missing)}")
    edited = [{**call, "arguments": arguments.get(call["call"], call["arguments"])} for call in calls]
    return _unbound(value | {"message": value["message"] | {"tool_calls": edited}})


def _unbound(value: Value) -> Value:
    if value["type"] != "model.completed" or not value["message"].get("verbatim"):
        return value
    return value | {"message": value["message"] | {"verbatim": None}}
