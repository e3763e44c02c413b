"""What the conversation is about after each event: entities that tools declared, and the tools that were used."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from wayline.contracts import events as e
from wayline.contracts.working_context import KnownEntity, KnownMemory
from wayline.journal.folding.tools import RAN
from wayline.journal.state import Changes, Job
from wayline.journal.strangers import stranger_of

PER_TYPE_MAX = 5
TYPES_MAX = 10
TOOLS_MAX = 20
MEMORIES_MAX = 60
"""Memories of which it is known that the model was told them: more than a user has of the lasting tiers."""


def _completed(job: Job, event: e.ToolCompleted) -> Changes:
    ran = event.error is None or event.error.code in RAN
    if not ran or not _is_awaited(job, event):
        return {}
    context = job.context
    used = context.tools_used
    changes: Changes = {}
    if not used or used[-1] != event.tool:
        changes["tools_used"] = (*(tool for tool in used if tool != event.tool), event.tool)[-TOOLS_MAX:]
    if not event.entities:
        return changes
    untrusted = stranger_of(job, event) is not None
    declared = [
        KnownEntity(type=one.type, id=one.id, name=one.name, tool=event.tool, untrusted=untrusted)
        for one in event.entities
    ]
    known = {(one.type, one.id): one.name for one in context.entities}
    new = [one for one in declared if known.get((one.type, one.id)) != one.name]
    entities = _newest((*context.entities, *declared))
    kept = set(entities)
    return changes | {
        "entities": entities,
        "untold": tuple(one for one in _newest((*context.untold, *new)) if one in kept),
    }


def _is_awaited(job: Job, event: e.ToolCompleted) -> bool:
    return any(call.wanted.call == event.call for call in (*job.tools.calls, *job.code.program_calls))


def _newest(entities: Iterable[KnownEntity]) -> tuple[KnownEntity, ...]:
    """Return the newest entities of each of the newest types, the newest last; the last word on one counts."""
    by_type: dict[str, dict[str, KnownEntity]] = {}
    for one in entities:
        same = by_type.pop(one.type, {})
        same.pop(one.id, None)
        same[one.id] = one
        by_type[one.type] = same
    kept = [one for same in [*by_type.values()][-TYPES_MAX:] for one in [*same.values()][-PER_TYPE_MAX:]]
    return tuple(kept)


def _told(job: Job, _: e.ContextCompacted) -> Changes:
    """Note that the model knows every entity, because the summary is said with all of them, and no memory."""
    changes: Changes = {"untold": ()} if job.context.untold else {}
    return changes | {"memories": ()} if job.context.memories else changes


def _remembered(job: Job, event: e.MemoryInjected) -> Changes:
    told = {one.fact_id: KnownMemory(fact_id=one.fact_id, version=one.version) for one in event.facts}
    kept = (one for one in job.context.memories if one.fact_id not in told and one.fact_id not in event.gone)
    return {"memories": (*kept, *told.values())[-MEMORIES_MAX:]}


def _injected(job: Job, event: e.ContextInjected) -> Changes:
    return {"untold": ()} if job.context.untold and event.note.label == "CONTEXT UPDATE" else {}


def _discovered(job: Job, event: e.ToolsDiscovered) -> Changes:
    names = tuple(dict.fromkeys(tool.name for tool in event.tools))
    before = (name for name in job.context.tools_discovered if name not in names)
    return {"tools_discovered": (*before, *names)[-TOOLS_MAX:]}


def _continued(_: Job, event: e.SessionContinued) -> Changes:
    """Take over what the jobs before it knew, also where their messages are lost or their tools are listed anew."""
    known = event.context
    tools: Changes = {"tools_used": known.tools_used, "tools_discovered": known.tools_discovered}
    # Where the history is lost, no prompt holds what the model was told before.
    memories = known.memories if event.after is not None else ()
    return {"entities": known.entities, "untold": (), "memories": memories, **tools}


CHANGES: dict[type[e.Event], Callable[[Job, Any], Changes]] = {
    e.ToolCompleted: _completed,
    e.ContextCompacted: _told,
    e.ContextInjected: _injected,
    e.MemoryInjected: _remembered,
    e.SessionContinued: _continued,
    e.ToolsDiscovered: _discovered,
}
