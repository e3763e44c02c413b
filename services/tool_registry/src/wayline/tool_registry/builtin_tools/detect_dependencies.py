"""The built-in tool `detect_dependencies`."""

# No `from __future__ import annotations`: the MCP library evaluates the tools' annotations where it finds them.

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from pydantic import Field

from wayline.contracts.knowledge import DocumentId
from wayline.contracts.task_graphs import DocumentContext, GetDocumentContext
from wayline.planning import (
    PASSAGES_MAX,
    Dependency,
    Detected,
    Passage,
    Task,
    detect_dependencies,
    read_tasks,
)
from wayline.tool_registry.builtin_tools.call_meta import audience_of_call, tenant_of_call
from wayline.tool_registry.builtin_tools.planning_tools import (
    GivenTasks,
    PlanningTools,
    ask_retrieval,
    json_result,
    named_tasks,
    refused,
    tasks_of,
)
from wayline.tool_registry.calls.results import STRANGERS

DOCUMENTS_MAX = 8
TEXT_MAX_CHARS = 60_000
TEXT_PIECE_CHARS = 6_000
DEPENDENCIES_SHOWN_MAX = 1_000
NO_TASKS = "No tasks were given, and the text and the documents list none (numbered lines, bullets, boxes to tick)."


def detect_dependencies_tool(planning: PlanningTools) -> Callable[..., Awaitable[Any]]:
    """Return the tool, reading documents by what asks retrieval."""

    async def detect_dependencies_of_tasks(
        tasks: Annotated[GivenTasks | None, Field(description="Left out: those that text and documents list.")] = None,
        text: Annotated[
            str, Field(max_length=TEXT_MAX_CHARS, description="More sentences that may say what depends on what.")
        ] = "",
        document_ids: Annotated[
            list[DocumentId] | None,
            Field(max_length=DOCUMENTS_MAX, description="Documents to read for the same, by id or name."),
        ] = None,
    ) -> Any:
        """Find which task needs which other one done before it, with how sure that is and the words that say so."""
        tenant = tenant_of_call()
        passages = [
            Passage("", text[start : start + TEXT_PIECE_CHARS]) for start in range(0, len(text), TEXT_PIECE_CHARS)
        ]
        untrusted = False
        for document_id in document_ids or ():
            read = await ask_retrieval(planning.context(_beginning(tenant, document_id, of=len(document_ids or ()))))
            if not isinstance(read, DocumentContext):
                return read
            untrusted = untrusted or read.untrusted
            passages += [Passage(read.document_id, one.text) for one in read.passages]
        try:
            known, found = await planning.compute(tenant, _detected, tasks_of(tasks or ()), passages)
        except ValueError as error:
            return refused(error)
        return json_result(_shown(known, found), {STRANGERS: True} if untrusted else None)

    detect_dependencies_of_tasks.__name__ = "detect_dependencies"
    return detect_dependencies_of_tasks


def _beginning(tenant: str, document_id: str, *, of: int) -> GetDocumentContext:
    """Return the request for a document's first passages, as many as one of several may have."""
    after = max(0, min(60, PASSAGES_MAX // of - 1))
    return GetDocumentContext(tenant=tenant, document_id=document_id, after=after, audience=audience_of_call())


def _detected(given: list[Task], passages: list[Passage]) -> tuple[list[Task], Detected]:
    known = given or read_tasks(passages)
    return known, detect_dependencies(known, passages)


def _shown(known: list[Task], found: Detected) -> dict[str, Any]:
    shown = found.dependencies[:DEPENDENCIES_SHOWN_MAX]
    value: dict[str, Any] = {
        "tasks": named_tasks(known),
        "dependencies": [_dependency(one) for one in shown],
    }
    if found.cut or len(shown) < len(found.dependencies):
        value["cut"] = True
    if not known:
        value["note"] = NO_TASKS
    return value


def _dependency(one: Dependency) -> dict[str, Any]:
    value = {"task": one.task, "needs": one.needs, "weight": one.weight, "kind": one.kind, "quote": one.quote}
    return value | ({"document_id": one.source} if one.source else {})
