"""The entities of a conversation: the newest of each type, and which of them the model was not told of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from wayline.contracts import events as e
from wayline.contracts.chat import NoteMessage, ToolCall
from wayline.contracts.tools import ToolDefinition, ToolError
from wayline.contracts.working_context import Entity, WorkingContext
from wayline.journal import Call, Job, evolve, fold
from wayline.journal.calls import Tools
from wayline.journal.folding.context import TOOLS_MAX

AT = datetime(2026, 1, 1, tzinfo=UTC)
TRACE = e.SpanRef(trace_id="0" * 32, span_id="0" * 16)


def event(kind: Any, **fields: Any) -> Any:
    return kind(job_id="j", seq=1, at=AT, trace=TRACE, **fields)


def found(*names: str, type: str = "order", tool: str = "shop__find", **more: Any) -> e.ToolCompleted:
    entities = tuple(Entity(type=type, id=name.partition(":")[0], name=name.partition(":")[2]) for name in names)
    more = {"status": "success", **more}
    return event(e.ToolCompleted, step=1, call="1", tool=tool, entities=entities, **more)


def played(events: list[e.Event]) -> Job:
    """Fold events of a step of which one call is never answered."""
    calls = tuple(Call(ToolCall(call=number, tool="t", arguments={})) for number in "12")
    return fold(events, Job(tools=Tools(calls=calls)))


def ids(job: Job) -> list[str]:
    return [one.id for one in job.context.entities]


def test_the_newest_five_of_a_type_stay():
    job = played([found(*"abcdefg"), found("x", type="seat"), found("c")])

    assert ids(job) == ["x", "d", "e", "f", "g", "c"]


def test_a_new_or_renamed_entity_is_told_once():
    told = event(e.ContextInjected, note=NoteMessage(label="CONTEXT UPDATE", text="New."))
    job = played([found("a", "b"), told])
    assert job.context.untold == ()

    again, renamed = evolve(job, found("a")), evolve(job, found("a:Shoes"))

    assert again.context.untold == ()
    assert [one.name for one in renamed.context.untold] == ["Shoes"]


def test_a_summary_tells_all_entities():
    summary = event(e.ContextCompacted, note=NoteMessage(label="CONTEXT", text="Short."), kept=0)

    assert played([found("a"), summary]).context.untold == ()


def test_only_tools_that_ran_are_used():
    refused = found(tool="shop__gone", status="failed", error=ToolError(code="unknown_tool", message="no"))
    failed = found(tool="shop__pay", status="failed", error=ToolError(code="tool_failed", message="no"))

    assert played([found(), refused, failed, found()]).context.tools_used == ("shop__pay", "shop__find")


def discovered(*names: str) -> e.ToolsDiscovered:
    return event(e.ToolsDiscovered, tools=tuple(ToolDefinition(name=name, description="d") for name in names))


def test_found_tools_stay_known_where_a_session_lists_anew():
    known = WorkingContext(tools_used=("a",), tools_discovered=("a", "b"))
    continued = event(e.SessionContinued, lost="it is gone", context=known)

    job = fold([continued, discovered("c", "a")])

    assert job.tools.discovered == discovered("c", "a").tools
    assert job.working_context == WorkingContext(tools_used=("a",), tools_discovered=("b", "c", "a"))


def test_only_the_newest_found_tools_stay_known():
    names = [f"t{n}" for n in range(TOOLS_MAX + 2)]

    assert fold([discovered(*names)]).working_context.tools_discovered == tuple(names[2:])
