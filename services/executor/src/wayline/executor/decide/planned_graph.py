"""What a job that planned tasks leaves for later plans. Pure."""

from __future__ import annotations

from typing import Any

import orjson

from wayline.contracts.chat import AssistantMessage, ToolMessage
from wayline.contracts.events import JobCompleted
from wayline.contracts.task_graphs import (
    GRAPH_DOCUMENTS_MAX,
    GRAPH_EDGES_MAX,
    GRAPH_TASKS_MAX,
    GraphEdge,
    GraphTask,
    SaveTaskGraph,
)
from wayline.journal import Job

DOCUMENT_ID_MAX_CHARS = 200


def planned_graph(job: Job) -> SaveTaskGraph | None:
    """Return the tasks of a job's plan and what each needs, to be stored; None: there is no plan.

    What it had from earlier plans is not stored again as its own.
    """
    ended, config = job.life.ended, job.routing.config
    if not isinstance(ended, JobCompleted) or config is None or config.assemble != "task_plan":
        return None
    plan = _plan(ended.answer)
    named = {one["id"]: one["name"] for one in plan["prioritized_tasks"]} if plan is not None else {}
    if plan is None or not named:
        return None
    edges = [
        GraphEdge(
            task=named[one["task"]],
            needs=named[one["needs"]],
            weight=one["weight"],
            kind=one["kind"],
            quote=one["quote"],
            document_id=one.get("document_id", ""),
        )
        for one in plan["dependencies"]
        if "source_job" not in one
    ]
    return SaveTaskGraph(
        tenant=job.tenant,
        job_id=job.job_id,
        tasks=tuple(GraphTask(name=name) for name in named.values())[:GRAPH_TASKS_MAX],
        edges=tuple(edges[:GRAPH_EDGES_MAX]),
        untrusted=job.tools.tainted_by is not None,
        document_ids=tuple(sorted(_documents_read(job)))[:GRAPH_DOCUMENTS_MAX],
    )


def _documents_read(job: Job) -> set[str]:
    """Return the documents that a job named to its tools, or that these cited."""
    named: list[Any] = []
    for message in job.conversation.prompted:
        if isinstance(message, AssistantMessage):
            for call in message.tool_calls:
                given = call.arguments.get("document_ids")
                named += [call.arguments.get("document_id"), *(given if isinstance(given, list) else ())]
        elif isinstance(message, ToolMessage):
            named += [citation.document_id for citation in message.citations]
    return {one for one in named if isinstance(one, str) and 0 < len(one) <= DOCUMENT_ID_MAX_CHARS}


def _plan(answer: str) -> dict[str, Any] | None:
    """Return a job's plan; None: it ended with other words, such as one whose input another job took."""
    try:
        plan = orjson.loads(answer)
    except orjson.JSONDecodeError:
        return None
    return plan if isinstance(plan, dict) and {"prioritized_tasks", "dependencies"} <= plan.keys() else None
