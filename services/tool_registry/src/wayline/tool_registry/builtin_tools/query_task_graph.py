"""The built-in tool `query_task_graph`."""

# No `from __future__ import annotations`: the MCP library evaluates the tools' annotations where it finds them.

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from pydantic import Field

from wayline.contracts.task_graphs import DEPTH_MAX, GRAPH_TASKS_MAX, TASK_NAME_MAX_CHARS, QueryTaskGraph, TaskGraph
from wayline.tool_registry.builtin_tools.call_meta import audience_of_call, tenant_of_call
from wayline.tool_registry.builtin_tools.planning_tools import PlanningTools, ask_retrieval, json_result
from wayline.tool_registry.calls.results import STRANGERS

TASKS_SHOWN = 100


def query_task_graph_tool(planning: PlanningTools) -> Callable[..., Awaitable[Any]]:
    """Return the tool, reading by what asks retrieval."""

    async def query_task_graph(
        names: Annotated[
            list[str] | None, Field(max_length=GRAPH_TASKS_MAX, description="Names of tasks, as they are planned.")
        ] = None,
        text: Annotated[str, Field(max_length=10_000, description="Tasks that share words with it.")] = "",
        depth: Annotated[int, Field(ge=0, le=DEPTH_MAX, description="How many dependencies away from them.")] = 1,
    ) -> Any:
        """Look up what earlier plans found: their tasks, and what each needs, with the evidence and its job."""
        asked = tuple(one.strip()[:TASK_NAME_MAX_CHARS] for one in names or () if one.strip())
        request = QueryTaskGraph(
            tenant=tenant_of_call(),
            names=asked,
            text=text,
            depth=depth,
            limit=TASKS_SHOWN,
            audience=audience_of_call(),
        )
        found = await ask_retrieval(planning.graph(request))
        if not isinstance(found, TaskGraph):
            return found
        untrusted = any(one.untrusted for one in (*found.tasks, *found.edges))
        value = {
            "tasks": [one.name for one in found.tasks],
            "dependencies": [one.model_dump(mode="json", exclude_defaults=True) for one in found.edges],
            "known_tasks": found.known_tasks,
            **({"cut": True} if found.cut else {}),
        }
        return json_result(value, {STRANGERS: True} if untrusted else None)

    return query_task_graph
