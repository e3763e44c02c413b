"""What the built-in tools for planning have in common: whom they ask, how tasks are given, where they compute."""

# No `from __future__ import annotations`: the MCP library evaluates the tools' annotations where it finds them.

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import Field

from wayline.contracts.errors import Reject, Retry
from wayline.contracts.knowledge import EmbeddedTexts, EmbedTexts
from wayline.contracts.plan_input import PlannedTask
from wayline.contracts.task_graphs import DocumentContext, GetDocumentContext, QueryTaskGraph, TaskGraph
from wayline.planning import TASKS_MAX, Task
from wayline.tool_registry.builtin_tools.call_meta import audience_of_call, tenant_of_call
from wayline.tool_registry.builtin_tools.search_knowledge import Search
from wayline.tool_registry.connection.failures import AWAY

if TYPE_CHECKING:
    from mcp_types import CallToolResult

T = TypeVar("T")
NAME_MAX_CHARS = 300
RESOLVED_MAX = 8
"""Documents of one call that may be named by their names."""
AMBIGUOUS = "ambiguous_document"
COMPUTING_MAX = 2
"""Plans that are computed at once in one process; of one tenant one at a time."""


GivenTasks = Annotated[list[PlannedTask], Field(max_length=TASKS_MAX)]


@dataclass(frozen=True, slots=True)
class PlanningTools:
    """Whom the tools for planning ask, and the threads in which they compute."""

    search: Search
    context: Callable[[GetDocumentContext], Awaitable[DocumentContext]]
    graph: Callable[[QueryTaskGraph], Awaitable[TaskGraph]]
    embed: Callable[[EmbedTexts], Awaitable[EmbeddedTexts]]
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(COMPUTING_MAX))
    _of_tenants: dict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))

    async def compute(self, tenant: str, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Run a function that takes its time off the event loop; tenants wait for their own work first."""
        lock = self._of_tenants[tenant]
        try:
            async with lock, self._slots:
                return await asyncio.to_thread(function, *arguments, **named)
        finally:
            if not lock.locked():
                self._of_tenants.pop(tenant, None)


def tasks_of(given: Sequence[PlannedTask]) -> list[Task]:
    """Return tasks as the planning library takes them; one without an id has its number in the list."""
    return [
        Task(
            one.id.strip() or str(number),
            one.name.strip()[:NAME_MAX_CHARS] or str(number),
            one.text,
            tuple(one.depends_on),
            one.priority,
        )
        for number, one in enumerate(given, start=1)
    ]


def named_tasks(known: Sequence[Task]) -> list[dict[str, str]]:
    """Return tasks as results name them."""
    return [{"id": one.id, "name": one.name} for one in known]


def json_result(value: Mapping[str, Any], meta: Mapping[str, Any] | None = None) -> "CallToolResult":
    """Return a result that a model and a program can read."""
    from mcp_types import CallToolResult, TextContent

    text = TextContent(type="text", text=json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    return CallToolResult(content=[text], _meta=dict(meta or {}))


def refused(why: object) -> "CallToolResult":
    """Return that a call cannot be answered, and why."""
    from mcp_types import CallToolResult, TextContent

    return CallToolResult(content=[TextContent(type="text", text=str(why))], is_error=True)


async def ids_of(planning: PlanningTools, named: Sequence[str] | None) -> "list[str] | CallToolResult | None":
    """Return the ids of documents that are named by id or name; the result that says why where several are meant.

    Only of a few: a list of many is one that a program made, of ids.
    """
    from mcp import MCPError

    if named is None or len(named) > RESOLVED_MAX:
        return None if named is None else list(named)
    found: list[str] = []
    for one in named:
        asked = GetDocumentContext(
            tenant=tenant_of_call(), document_id=one, before=0, after=0, audience=audience_of_call()
        )
        try:
            found.append((await planning.context(asked)).document_id)
        except Retry as error:
            raise MCPError(AWAY, f"the knowledge base is away: {error}") from error
        except Reject as error:
            if error.code == AMBIGUOUS:
                return refused(error)
            # Of a document that is not there a search says so itself.
            found.append(one)
    return found


async def ask_retrieval(asking: Awaitable[T]) -> "T | CallToolResult":
    """Return what retrieval answers, or the result that says why it refuses. Raises MCPError while it is away."""
    from mcp import MCPError

    try:
        return await asking
    except Retry as error:
        raise MCPError(AWAY, f"the knowledge base is away: {error}") from error
    except Reject as error:
        return refused(error)
