"""The built-in tool `semantic_search`."""

# No `from __future__ import annotations`: the MCP library evaluates the tools' annotations where it finds them.

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from pydantic import Field

from wayline.contracts.knowledge import Filter, QueryText, SearchKnowledge, SearchResult
from wayline.tool_registry.builtin_tools.call_meta import audience_of_call, is_direct_call, tenant_of_call
from wayline.tool_registry.builtin_tools.planning_tools import PlanningTools, ask_retrieval, ids_of, json_result
from wayline.tool_registry.builtin_tools.search_knowledge import TOP_K_MAX, citations, cost, strangers
from wayline.tool_registry.calls.results import CITATIONS


def semantic_search_tool(planning: PlanningTools) -> Callable[..., Awaitable[Any]]:
    """Return the tool, searching by what asks retrieval."""

    async def semantic_search(
        query: Annotated[QueryText, Field(description="What to look for, in plain words.")],
        top_k: Annotated[int, Field(ge=1, le=TOP_K_MAX, description="How many passages at most.")] = 8,
        document_ids: Annotated[
            list[str] | None,
            Field(max_length=1_000, description="Only in these documents, by id or name; an empty list: in none."),
        ] = None,
    ) -> Any:
        """Find passages by meaning and words, as JSON with the ids by which the text around each can be read."""
        named = await ids_of(planning, document_ids)
        if not isinstance(named, list | None):
            return named
        request = SearchKnowledge(
            tenant=tenant_of_call(),
            query=query,
            top_k=top_k,
            filter=Filter() if named is None else Filter(document_ids=tuple(named)),
            audience=audience_of_call(),
            caller_pays=not is_direct_call(),
        )
        found = await ask_retrieval(planning.search(request))
        if not isinstance(found, SearchResult):
            return found
        passages = [
            {
                "document_id": hit.document_id,
                "document": hit.document,
                "chunk_id": hit.chunk_id,
                "score": round(hit.score, 4),
                "text": hit.text,
            }
            for hit in found.hits
        ]
        value = {"passages": passages, "mode": found.mode, **({"note": found.note} if found.note else {})}
        return json_result(value, {CITATIONS: citations(found)} | cost(found) | strangers(found))

    return semantic_search
