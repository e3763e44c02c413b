"""What the platform itself changes in a conversation."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from wayline.contracts.base import Frozen
from wayline.contracts.chat import Citation, NoteMessage
from wayline.contracts.events.event import Event


class ContextInjected(Event):
    """The platform told the model something; it stays where it was said."""

    type: Literal["context.injected"] = "context.injected"
    note: NoteMessage
    about: Literal["required_tools"] | None = Field(
        default=None, description="What an answer lacked that was sent back; None: something else is told."
    )


class InjectedFact(Frozen):
    """A memory that the model was told, and why."""

    fact_id: str
    version: int
    why: str = Field(description="`core`: who the user is; `fits`: it fits the input; `changed`: it was told before.")
    similarity: float = Field(default=0, description="How well it fits the input.")


class MemoryInjected(Event):
    """The model was told what is remembered of the job's user: read here ever after, never from the store again."""

    type: Literal["memory.injected"] = "memory.injected"
    note: NoteMessage = Field(description="Its first line says what it is, then each fact has a line, in their order.")
    facts: tuple[InjectedFact, ...] = ()
    gone: tuple[str, ...] = Field(default=(), description="Facts that were told before and do not count any more.")
    tokens: int = Field(default=0, ge=0, description="Estimated, of the note.")


class ContextCompacted(Event):
    """A summary took the place of all messages between the first one and the last few."""

    type: Literal["context.compacted"] = "context.compacted"
    note: NoteMessage
    kept: int = Field(ge=0, description="Messages at the end that stay as they are.")


class ResultSummarized(Event):
    """A helper model's summary took the place of a long tool result, before any prompt held it."""

    type: Literal["result.summarized"] = "result.summarized"
    step: int
    call: str
    content: str = Field(description="What the model is shown; the whole result is in the call's `tool.completed`.")


class QueryRewritten(Event):
    """A helper model wrote a follow-up's query so that it stands by itself, or why the query stayed as it was."""

    type: Literal["query.rewritten"] = "query.rewritten"
    step: int
    call: str
    rewritten: bool
    query: str = Field(default="", description="What is searched instead; empty where the query stayed.")
    reason: str | None = Field(default=None, description="Why the query stayed.")


class PassagesReranked(Event):
    """A helper model chose the best of the passages that a search had found, or why their order stayed."""

    type: Literal["passages.reranked"] = "passages.reranked"
    step: int
    call: str
    reranked: bool
    reason: str | None = Field(default=None, description="Why the search's own order stayed.")
    order: tuple[int, ...] = Field(
        default=(),
        description="The places of what is shown, from 0, among what the call's `tool.completed` found.",
    )
    content: str = Field(default="", description="What the model is shown instead; empty where the order stayed.")
    citations: tuple[Citation, ...] = ()
