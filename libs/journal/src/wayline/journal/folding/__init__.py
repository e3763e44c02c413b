"""What each event means for a job: a fold over its log, the same for every reader.

Each part of a job has a module here with its table: the events that change it, and which of its fields each changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.journal.calls import Call
from wayline.journal.folding import (
    code,
    context,
    conversation,
    family,
    life,
    model_calls,
    money,
    remembering,
    routing,
    session,
    tools,
)
from wayline.journal.state import Changes, Job

_TABLES: dict[str, dict[type[e.Event], Callable[[Job, Any], Changes]]] = {
    "life": life.CHANGES,
    "conversation": conversation.CHANGES,
    "model": model_calls.CHANGES,
    "tools": tools.CHANGES,
    "code": code.CHANGES,
    "routing": routing.CHANGES,
    "money": money.CHANGES,
    "session": session.CHANGES,
    "family": family.CHANGES,
    "context": context.CHANGES,
    "remembering": remembering.CHANGES,
}
_PLACES = {name: place for place, name in enumerate(Job._fields)}
_FIELDS = {part: {name: place for place, name in enumerate(getattr(Job(), part)._fields)} for part in _TABLES}

Change = tuple[int, dict[str, int], Callable[[Job, Any], Changes]]
"""A part's place in a job, the places of its fields, and how an event changes it."""


def _by_event() -> dict[type[e.Event], tuple[Change, ...]]:
    """Return for each type of event the parts that it changes."""
    found: dict[type[e.Event], tuple[Change, ...]] = {}
    for part, table in _TABLES.items():
        for kind, changes in table.items():
            found[kind] = (*found.get(kind, ()), (_PLACES[part], _FIELDS[part], changes))
    return found


_CHANGES = _by_event()
_make: Any = tuple.__new__
"""What `NamedTuple._make` calls, without its count of the fields."""


def evolve(job: Job, event: e.Event) -> Job:
    """Apply one event to a state; a type this build does not know changes nothing but the place in the log.

    Every part is made from the parts as they were before the event.
    """
    if type(event) is e.JobForked:
        return _forked(job, event)
    values: list[Any] = list(job)
    values[2], values[3] = event.seq, event.at
    kind: type[Any] = type(event)
    if kind is e.JobSubmitted:
        values[:2] = event.job_id, event.tenant  # pyright: ignore[reportAttributeAccessIssue]
    for place, fields, changes in _CHANGES.get(kind, ()):
        if changed := changes(job, event):
            # Not `_replace`, which looks every field up by its name, for every event of every log.
            before = values[place]
            part = list(before)
            for name, value in changed.items():
                part[fields[name]] = value
            values[place] = _make(type(before), part)
    return _make(Job, values)


def _forked(job: Job, event: e.JobForked) -> Job:
    """Return the state of a job that begins with another's conversation; its life, route and money are its own."""
    shared = fold(map(e.read_event, event.prefix), job)
    routing, began = shared.routing, shared.model.asked is not None
    return shared._replace(
        job_id=job.job_id,
        tenant=job.tenant,
        seq=event.seq,
        at=event.at,
        life=job.life._replace(origin=event.origin),
        # An approval was given for a call of the other job: this one asks for its own.
        tools=shared.tools._replace(approvals=(), calls=tuple(_own(call, job, shared) for call in shared.tools.calls)),
        session=shared.session._replace(turn=None),
        family=job.family,
        model=shared.model._replace(open=None, aux_open=None, failed=None, failures=0),
        routing=job.routing._replace(classified=began or routing.classified, escalated=routing.escalated),
        money=job.money,
    )


def _own(call: Call, job: Job, shared: Job) -> Call:
    """Return a call as the fork has it: an open program runs again there, in a span of its own trace."""
    if call.key is None or call.done is not None:
        return call
    span_id = ids.tool_span(job.tenant, job.job_id, shared.model.step, call.wanted.call)
    return call._replace(span=e.SpanRef(trace_id=ids.trace_id(job.tenant, job.job_id), span_id=span_id))


def fold(events: Iterable[e.Event], job: Job | None = None) -> Job:
    """Return the state after a history."""
    return reduce(evolve, events, job or Job())
