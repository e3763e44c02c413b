"""The built-in tools that remember: facts about the user, and insights about subjects."""

# No `from __future__ import annotations`: the MCP library evaluates the tools' annotations where it finds them.

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, Field

from wayline.contracts.call_origin import CallOrigin
from wayline.contracts.errors import Reject, Retry
from wayline.contracts.memory import (
    CONFIDENCE,
    FACT_CHARS_MAX,
    FACTS_PER_SAVE_MAX,
    NO_MEMORIES,
    QUOTE_CHARS_MAX,
    FactsRecalled,
    FactsSaved,
    FoundFact,
    InsightCategory,
    MemoryCategory,
    NewFact,
    Quoted,
    RecallInsights,
    RecallMemories,
    SaveMemories,
    StoreInsights,
    SubjectRef,
    Tier,
    WrittenBy,
)
from wayline.tool_registry.builtin_tools.call_meta import (
    is_direct_call,
    key_of_call,
    origin_of_call,
    tenant_of_call,
    user_of_call,
)
from wayline.tool_registry.connection.failures import AWAY

NO_USER = "this job has no user: memories are kept for the `user_id` that a job is submitted with"
NOT_TOLD = "an executor that does not say what its job has read"
"""Taints what an executor of the version before has saved: it is not known what its job had read."""

Tool = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class MemoryRequests:
    """Asks retrieval to remember and to recall."""

    save: Callable[[SaveMemories], Awaitable[FactsSaved]]
    recall: Callable[[RecallMemories], Awaitable[FactsRecalled]]
    store: Callable[[StoreInsights], Awaitable[FactsSaved]]
    recall_insights: Callable[[RecallInsights], Awaitable[FactsRecalled]]


class FactToSave(BaseModel):
    """One thing about the user that stays true."""

    fact: Annotated[
        str, Field(min_length=1, max_length=FACT_CHARS_MAX, description="One sentence, such as `Lives in Bonn.`")
    ]
    category: MemoryCategory
    tier: Annotated[
        Tier, Field(description="core: who the user is; important: for months; context: for this month.")
    ] = "context"
    quote: Annotated[
        str | None,
        Field(max_length=QUOTE_CHARS_MAX, description="The user's own words that say it, copied exactly."),
    ] = None
    confidence: Annotated[float, Field(ge=0, le=1)] = CONFIDENCE
    keywords: Annotated[list[str], Field(max_length=16)] = []
    about: Annotated[str | None, Field(max_length=64, description="What it is the one value of: `home city`.")] = None
    replaces: Annotated[str | None, Field(max_length=64, description="The id of the memory that it corrects.")] = None


def memory_tools(requests: MemoryRequests) -> list[Tool]:
    """Return the tools; what they save carries what the log proves, never what the model says of it."""
    return [*_tools_of_memories(requests), *_tools_of_insights(requests)]


def _tools_of_memories(requests: MemoryRequests) -> list[Tool]:
    """Return the tools that save and find facts about the user."""

    async def memory_save(
        facts: Annotated[list[FactToSave], Field(min_length=1, max_length=FACTS_PER_SAVE_MAX)],
    ) -> Any:
        """Remember lasting facts about the user for later conversations.

        Only what the user said and what stays true: no secrets or numbers of accounts, nothing of today, no guesses,
        nothing that you said. With `quote` a fact counts as the user's own words; without it as a guess.
        """
        user_id = user_of_call()
        if user_id is None:
            return _failed(NO_USER)
        origin = origin_of_call()
        new = [_new(one.fact, origin, one.model_dump(exclude={"fact"}, exclude_none=True)) for one in facts]
        request = SaveMemories(
            tenant=tenant_of_call(),
            key=key_of_call(),
            user_id=user_id,
            facts=tuple(new),
            written=_written(origin, [one.fact for one in facts]),
        )
        return await _answer(requests.save(request), _saved)

    async def memory_retrieve(
        search_terms: Annotated[
            list[str] | None, Field(max_length=10, description="What to look for; left out: what matters most.")
        ] = None,
        categories: Annotated[list[MemoryCategory] | None, Field(description="Only of these.")] = None,
    ) -> Any:
        """Recall what is remembered about the user."""
        user_id = user_of_call()
        if user_id is None:
            return _failed(NO_USER)
        request = RecallMemories(
            tenant=tenant_of_call(),
            user_id=user_id,
            search_terms=tuple(search_terms or ()),
            # A model that sends an empty list means that it does not choose.
            categories=tuple(categories) if categories else None,
            key=key_of_call(),
            **_place(),
        )
        return await _answer(requests.recall(request), _recalled)

    return [memory_save, memory_retrieve]


def _tools_of_insights(requests: MemoryRequests) -> list[Tool]:
    """Return the tools that save and find what is known about subjects."""

    async def store_insight(
        *,
        subject_type: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$", description="Such as `client`.")],
        subject_id: Annotated[str, Field(min_length=1, max_length=128)],
        insight: Annotated[str, Field(min_length=1, max_length=FACT_CHARS_MAX)],
        category: InsightCategory,
        importance: Annotated[int, Field(ge=1, le=10)] = 5,
        quote: Annotated[
            str | None, Field(max_length=QUOTE_CHARS_MAX, description="The user's words that say it, copied exactly.")
        ] = None,
        other_type: Annotated[str | None, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")] = None,
        other_id: Annotated[str | None, Field(min_length=1, max_length=128)] = None,
    ) -> Any:
        """Remember something about a subject: a client, a company, a product; optionally in relation to another."""
        origin = origin_of_call()
        other = SubjectRef(type=other_type, id=other_id) if other_type and other_id else None
        fields = {"category": category, "importance": importance, "quote": quote}
        request = StoreInsights(
            tenant=tenant_of_call(),
            key=key_of_call(),
            about=SubjectRef(type=subject_type, id=subject_id),
            other=other,
            facts=(_new(insight, origin, fields),),
            written=_written(origin, [insight]),
            user_id=user_of_call(),
        )
        return await _answer(requests.store(request), _saved)

    async def retrieve_context(
        *,
        subject_type: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")],
        subject_id: Annotated[str, Field(min_length=1, max_length=128)],
        query: Annotated[str, Field(max_length=10_000, description="What you want to know of it.")] = "",
        limit: Annotated[int, Field(ge=1, le=50)] = 5,
    ) -> Any:
        """Recall what is known about a subject, best fit first."""
        request = RecallInsights(
            tenant=tenant_of_call(),
            about=SubjectRef(type=subject_type, id=subject_id),
            query=query,
            limit=limit,
            key=key_of_call(),
            **_place(),
        )
        return await _answer(requests.recall_insights(request), _recalled)

    return [store_insight, retrieve_context]


def _new(text: str, origin: CallOrigin | None, fields: dict[str, Any]) -> NewFact:
    """Return a fact with where its quote was found; a quote that was not found proves nothing."""
    found = next((one for one in origin.quotes if one.quote == fields.get("quote")), None) if origin else None
    quoted = Quoted(job_id=found.job_id, seq=found.seq, said_at=found.said_at) if found else None
    of_assistant = origin is not None and text in origin.of_assistant
    return NewFact.model_validate({"text": text, **fields, "quoted": quoted, "of_assistant": of_assistant})


def _written(origin: CallOrigin | None, texts: Sequence[str]) -> WrittenBy:
    """Return who writes: a call of a job says what it has read and what was never said, a direct call is of no job."""
    if origin is None:
        return WrittenBy() if is_direct_call() else WrittenBy(tainted_by=(NOT_TOLD,))
    _, job_id, step, *_ = key_of_call().split("/")
    return WrittenBy(
        agent=origin.agent,
        job_id=job_id,
        step=int(step),
        conversation=origin.session_id,
        tainted_by=origin.tainted_by,
        unsaid=tuple(number for number, text in enumerate(texts) if text in origin.unsaid),
    )


def _place() -> dict[str, Any]:
    """Return the conversation and the job in which what is recalled is used; a direct call is of none."""
    origin = origin_of_call()
    if origin is None or is_direct_call():
        return {}
    return {"conversation": origin.session_id, "job_id": key_of_call().split("/")[1]}


async def _answer(asking: Awaitable[Any], shown: Callable[[Any], str]) -> Any:
    from mcp import MCPError
    from mcp_types import CallToolResult, TextContent

    try:
        found = await asking
    except Retry as error:
        raise MCPError(AWAY, f"the memory is away: {error}") from error
    except Reject as error:
        return _failed(str(error))
    return CallToolResult(content=[TextContent(type="text", text=shown(found))])


def _failed(message: str) -> Any:
    from mcp_types import CallToolResult, TextContent

    return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True)


def _saved(saved: FactsSaved) -> str:
    lines: list[str] = []
    for number, one in enumerate(saved.outcomes, start=1):
        named = f" {one.fact_id}" if one.fact_id else ""
        why = f": {one.reason}" if one.reason else ""
        against = f" It contradicts {', '.join(one.conflicts_with)}." if one.conflicts_with else ""
        lines.append(f"{number}. {one.outcome}{named}{why}.{against}")
    return "\n".join(lines)


def _recalled(found: FactsRecalled) -> str:
    if not found.facts:
        return found.note or NO_MEMORIES
    shown = {"facts": [_shown(one) for one in found.facts], "matched": found.matched, "total": found.total}
    return json.dumps(shown if found.degraded is None else shown | {"degraded": True}, ensure_ascii=False)


def _shown(fact: FoundFact) -> dict[str, Any]:
    fields: Sequence[tuple[str, Any]] = (
        ("id", fact.fact_id),
        ("fact", fact.text),
        ("category", fact.category),
        ("tier", fact.tier),
        ("importance", fact.importance if fact.kind == "insight" else None),
        ("confidence", fact.confidence),
        ("similarity", fact.similarity or None),
        ("trust", fact.trust),
        ("since", fact.recorded_at.date().isoformat()),
        ("contradicts", list(fact.conflicts_with) or None),
    )
    return {name: value for name, value in fields if value is not None}
