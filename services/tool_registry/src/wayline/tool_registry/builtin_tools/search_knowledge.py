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
    Filter,
    Hit,
    QueryText,
    SearchKnowledge,
    SearchResult,
)
from wayline.contracts.reranking import RERANKED_MAX, FoundPassage, FoundPassages, numbered, with_note
from wayline.tool_registry.builtin_tools.call_meta import (
    audience_of_call,
    is_direct_call,
    is_reranked_call,
    tenant_of_call,
)
from wayline.tool_registry.calls.results import CITATIONS, COST, FOUND, STRANGERS
from wayline.tool_registry.connection.failures import AWAY

TOP_K_MAX = 50
_BUILDING = "(Some passages were compared by their words alone.)"
_DEGRADED = {
    "vectors": "(This search compared words alone: what says the same in other words may be missing.)",
    "words": "(This search compared meanings alone: exact names and numbers may be missing.)",
    "rerank": "(These passages are in the order of the search; they were not ranked again.)",
}
"""What a model is told where part of a search could not answer; the details are not the model's business."""
NOT_RANKED = f"{_DEGRADED['rerank'][:-2]}: only a job can have that done.)"

FILTER = (
    'What must hold of a document\'s metadata, by key: {"year": {"gte": 2020}, "kind": {"in": ["a", "b"]}, '
    '"draft": {"exists": false}}.'
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
        collections: Annotated[list[str] | None, Field(description="Only in these collections.")] = None,
        rerank: Annotated[bool | None, Field(description="Have a model choose, for a little money.")] = None,
    ) -> CallToolResult:
        """Find passages in the documents of the knowledge base; each comes with the document it is from."""
        # Nobody outside of a job pays a model for it.
        ranks = (is_reranked_call() if rerank is None else rerank) and not is_direct_call()
        request = SearchKnowledge(
            tenant=tenant_of_call(),
            query=query,
            top_k=max(top_k, RERANKED_MAX) if ranks else top_k,
            mode=mode,
            filter=_filter(document_ids, filter, collections),
            audience=audience_of_call(),
            # A helper model chooses among passages, and not among pieces of documents of any length.
            join_neighbours=not ranks,
            # Of a job: its log reports what the search costs.
            caller_pays=not is_direct_call(),
        )
        try:
            found = await search(request)
        except Retry as error:
            raise MCPError(AWAY, f"the knowledge base is away: {error}") from error
        except Reject as error:
            return CallToolResult(content=[TextContent(type="text", text=str(error))], is_error=True)
        more = to_choose_from(found, query=query, top=top_k) if ranks else {}
        told = strangers(found) | cost(found)
        found = found.model_copy(update={"hits": found.hits[:top_k]})
        text = passages(found, note=NOT_RANKED if rerank and not ranks else "")
        return CallToolResult(
            content=[TextContent(type="text", text=text)], _meta={CITATIONS: citations(found)} | told | more
        )

    return search_knowledge


def to_choose_from(found: SearchResult, *, query: str, top: int) -> dict[str, Any]:
    """Return what a job's helper model chooses from; nothing where a model would have no choice."""
    if len(found.hits) < 2:
        return {}
    some = FoundPassages(query=query, top=top, passages=tuple(map(_found, found.hits)), note=_note(found))
    return {FOUND: some.model_dump(mode="json")}


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
    return [_cited(hit).model_dump() for hit in found.hits]


def _cited(hit: Hit) -> Citation:
    return Citation(
        document=hit.document,
        quote=hit.text,
        document_id=hit.document_id,
        chunk_id=hit.chunk_id,
        covered=hit.why.get(COVERED),
    )


def _found(hit: Hit) -> FoundPassage:
    return FoundPassage(citation=_cited(hit), heading=_heading(hit), untrusted=hit.untrusted)


def cost(found: SearchResult) -> dict[str, Any]:
    """Return the search's cost in the form of a tool's charge, which the job's log records."""
    return {} if not found.cost_usd else {COST: str(found.cost_usd)}


def strangers(found: SearchResult) -> dict[str, Any]:
    """Return that passages hold the words of strangers, where a document of one is not trusted."""
    return {STRANGERS: True} if any(hit.untrusted for hit in found.hits) else {}


def passages(found: SearchResult, *, note: str = "") -> str:
    """Return the passages as a model reads them, numbered in the order of the citations."""
    if not found.hits:
        text = f"No passage was found.{f' {found.note}' if found.note else ''}"
    else:
        text = numbered([_found(hit) for hit in found.hits])
    return with_note(with_note(text, _note(found)), note)


def _note(found: SearchResult) -> str:
    """Return what a model is told where part of the search could not answer."""
    if not found.degraded:
        return ""
    missing = found.degraded[0]
    return _BUILDING if missing.reason == "building" else _DEGRADED[missing.leg]


def _heading(hit: Hit) -> str | None:
    """Return a passage's section or its table's columns, where it does not hold them itself."""
    headings = hit.metadata.get("headings")
    last = headings[-1] if isinstance(headings, list) and headings else None
    return last if isinstance(last, str) and last not in hit.text else None
