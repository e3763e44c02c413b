"""The built-in tool `get_document_context`."""

# No `from __future__ import annotations`: the MCP library evaluates the tools' annotations where it finds them.

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from pydantic import Field

from wayline.contracts.knowledge import DocumentId
from wayline.contracts.task_graphs import DocumentContext, GetDocumentContext
from wayline.tool_registry.builtin_tools.call_meta import audience_of_call, tenant_of_call
from wayline.tool_registry.builtin_tools.planning_tools import PlanningTools, ask_retrieval, json_result
from wayline.tool_registry.calls.results import STRANGERS


def get_document_context_tool(planning: PlanningTools) -> Callable[..., Awaitable[Any]]:
    """Return the tool, reading by what asks retrieval."""

    async def get_document_context(
        document_id: Annotated[DocumentId, Field(description="As a search gave it, or its name.")],
        chunk_id: Annotated[
            str | None,
            Field(max_length=400, description="The passage to read around; left out: the document's beginning."),
        ] = None,
        before: Annotated[int, Field(ge=0, le=20, description="Passages before it.")] = 1,
        after: Annotated[int, Field(ge=0, le=20, description="Passages behind it.")] = 3,
    ) -> Any:
        """Read a document around a passage that a search found, or from its beginning."""
        request = GetDocumentContext(
            tenant=tenant_of_call(),
            document_id=document_id,
            chunk_id=chunk_id,
            before=before,
            after=after,
            audience=audience_of_call(),
        )
        found = await ask_retrieval(planning.context(request))
        if not isinstance(found, DocumentContext):
            return found
        value = {
            "document_id": found.document_id,
            "document": found.document,
            "passages": [one.model_dump(exclude={"position"}) for one in found.passages],
            "passages_total": found.passages_total,
        }
        return json_result(value, {STRANGERS: True} if found.untrusted else None)

    return get_document_context
