"""The built-in tool `search_knowledge`."""

# No `from __future__ import annotations`: the MCP library evaluates the tools' annotations where it finds them.

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

from pydantic import Field

from wayline.contracts.chat import Citation
from wayline.contracts.errors import Reject, Retry
from wayline.contracts.knowledge import (
    COVERED,
    Condition,
    Degraded,
    Filter,
    Hit,
    QueryText,
    SearchKnowledge,
    SearchResult,
)
from wayline.tool_registry.builtin_tools.call_meta import audience_of_call, is_direct_call, tenant_of_call
from wayline.tool_registry.calls.results import CITATIONS, COST, STRANGERS
from wayline.tool_registry.connection.failures import AWAY

TOP_K_MAX = 50
_BUILDING = "(Some passages were compared by their words alone.)"
_DEGRADED = {
    "vectors": "(This search compared words alone: what says the same in other words may be missing.)",
    "words": "(This search compared meanings alone: exact names and numbers may be missing.)",
    "rerank": "(These passages are in the order of the search; they were not ranked again.)",
}
"""What a model is told where part of a search could not answer; the details are not the model's business."""

FILTER = (
    'What must hold of a document\'s metadata, by key: {"year": {"gte": 2020}, "kind": {"in": ["a", "b"]}, '
    '"draft": {"exists": false}, "author": {"equals": "Ann"}}.'
)
Mode = Literal["hybrid", "keyword", "vector"]
Search = Callable[[SearchKnowledge], Awaitable[SearchResult]]


def search_knowledge_tool(search: Search) -> Callable[..., Awaitable[Any]]:
    """Return the tool, searching by what asks retrieval."""
    from mcp import MCPError
    from mcp_types import CallToolResult, TextContent

    async def search_knowledge(
        query: Annotated[QueryText, Field(description="What to look for, in plain words.")],
        top_k: Annotated[int, Field(ge=1, le=TOP_K_MAX, description="How many passages at most.")] = 5,
        *,
        document_ids: Annotated[
            list[str] | None, Field(description="Only in these documents; an empty list: in none.")
        ] = None,
        mode: Annotated[
            Mode, Field(description="`keyword` for exact words and identifiers, `vector` for meaning alone.")
        ] = "hybrid",
        filter: Annotated[dict[str, Condition] | None, Field(description=FILTER)] = None,
        collections: Annotated[list[str] | None, Field(description="Only in documents of these collections.")] = None,
    ) -> CallToolResult:
        """Find passages in the documents of the knowledge base; each comes with the document it is from."""
        request = SearchKnowledge(
            tenant=tenant_of_call(),
            query=query,
            top_k=top_k,
            mode=mode,
            filter=_filter(document_ids, filter, collections),
            audience=audience_of_call(),
            # Of a job: its log reports what the search costs.
            caller_pays=not is_direct_call(),
        )
        try:
            found = await search(request)
        except Retry as error:
            raise MCPError(AWAY, f"the knowledge base is away: {error}") from error
        except Reject as error:
            return CallToolResult(content=[TextContent(type="text", text=str(error))], is_error=True)
        text = TextContent(type="text", text=passages(found))
        return CallToolResult(content=[text], _meta={CITATIONS: citations(found)} | cost(found) | strangers(found))

    return search_knowledge


def _filter(
    document_ids: list[str] | None, where: dict[str, Condition] | None, collections: list[str] | None
) -> Filter:
    """Return what is asked of documents; only what is set travels, since an older retrieval knows no more."""
    asked: dict[str, Any] = {}
    if document_ids is not None:
        asked["document_ids"] = tuple(document_ids)
    if where:
        asked["where"] = where
    if collections is not None:
        asked["collections"] = tuple(collections)
    return Filter(**asked)


def citations(found: SearchResult) -> list[dict[str, Any]]:
    """Return what an answer may cite, in the order of the passages."""
    return [
        Citation(
            document=hit.document,
            quote=hit.text,
            document_id=hit.document_id,
            chunk_id=hit.chunk_id,
            covered=hit.why.get(COVERED),
        ).model_dump()
        for hit in found.hits
    ]


def cost(found: SearchResult) -> dict[str, Any]:
    """Return the search's cost in the form of a tool's charge, which the job's log records."""
    return {} if not found.cost_usd else {COST: str(found.cost_usd)}


def strangers(found: SearchResult) -> dict[str, Any]:
    """Return that passages hold the words of strangers, where a document of one is not trusted."""
    return {STRANGERS: True} if any(hit.untrusted for hit in found.hits) else {}


def passages(found: SearchResult) -> str:
    """Return the passages as a model reads them, numbered in the order of the citations."""
    if not found.hits:
        text = f"No passage was found.{f' {found.note}' if found.note else ''}"
    else:
        text = "\n\n".join(f"[{n}] {hit.document}\n{_in_place(hit)}" for n, hit in enumerate(found.hits, start=1))
    return text if not found.degraded else f"{text}\n\n{_told(found.degraded[0])}"


def _told(missing: Degraded) -> str:
    return _BUILDING if missing.reason == "building" else _DEGRADED[missing.leg]


def _in_place(hit: Hit) -> str:
    """Put a passage under its section's heading or its table's columns, where it does not hold them itself."""
    headings = hit.metadata.get("headings")
    last = headings[-1] if isinstance(headings, list) and headings else None
    return hit.text if not isinstance(last, str) or last in hit.text else f"{last}\n{hit.text}"
