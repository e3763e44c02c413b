"""Bodies about what is remembered."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

from wayline.contracts.memory import (
    CONFIDENCE,
    FACT_CHARS_MAX,
    FACTS_PER_SAVE_MAX,
    FactChange,
    FactId,
    FactSource,
    InsightCategory,
    Keyword,
    MemoryCategory,
    NewFact,
    SubjectLink,
    SubjectRef,
    Tier,
)
from wayline.gateway.shapes.body import ONE_LINE, TEXT_WITHOUT_NUL, Body, Label, Metadata

FactText = Annotated[str, StringConstraints(min_length=1, max_length=FACT_CHARS_MAX, pattern=TEXT_WITHOUT_NUL)]
SearchText = Annotated[str, StringConstraints(max_length=10_000, pattern=TEXT_WITHOUT_NUL)]
Reason = Annotated[str, StringConstraints(max_length=500, pattern=TEXT_WITHOUT_NUL)]


class FactBody(Body):
    """What memories and insights have in common."""

    text: FactText
    importance: int = Field(default=5, ge=1, le=10)
    confidence: float = Field(default=CONFIDENCE, ge=0, le=1)
    keywords: tuple[Keyword, ...] = Field(default=(), max_length=16)
    about: Annotated[str, StringConstraints(max_length=64, pattern=ONE_LINE)] | None = Field(
        default=None, description="What it is the one value of, such as `home city`."
    )
    replaces: FactId | None = Field(default=None, description="The fact that it supersedes.")
    expires_at: datetime | None = None
    valid_from: datetime | None = None

    def fact(self) -> NewFact:
        """Return the fact that is to be remembered."""
        return NewFact.model_validate(self.model_dump(exclude_none=True))


class MemoryBody(FactBody):
    """A fact about a user."""

    category: MemoryCategory
    tier: Tier = "context"


class InsightBody(FactBody):
    """A fact about a subject."""

    category: InsightCategory


class SaveMemoriesBody(Body):
    """Facts about a user that are to be remembered."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"user_id": "alice", "facts": [{"text": "Lives in Bonn.", "category": "profile", "tier": "core"}]}
            ]
        }
    )

    user_id: Label
    facts: tuple[MemoryBody, ...] = Field(min_length=1, max_length=FACTS_PER_SAVE_MAX)
    source: FactSource = Field(
        default="user_noted",
        description="`user_noted`: the user's or a person's own word. Else each counts as inferred, for no log proves "
        "it: confidence at most 0.5, tier `context`.",
    )
    conversation: Label | None = None


class RecallBody(Body):
    """What is looked for among a user's memories."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"user_id": "alice", "search_terms": ["where to live"]}]})

    user_id: Label
    search_terms: tuple[SearchText, ...] = Field(default=(), max_length=10)
    categories: tuple[MemoryCategory, ...] | None = Field(default=None, description="null: of all; empty: of none.")
    tiers: tuple[Tier, ...] | None = None
    limit: int = Field(default=10, ge=1, le=100)
    as_of: datetime | None = Field(default=None, description="As it was known then.")


class StoreInsightsBody(Body):
    """Facts about a subject that are to be remembered."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "subject": {"type": "client", "id": "acme"},
                    "facts": [{"text": "Client loves sea views.", "category": "preference", "importance": 8}],
                }
            ]
        }
    )

    subject: SubjectRef
    other_subject: SubjectRef | None = None
    facts: tuple[InsightBody, ...] = Field(min_length=1, max_length=FACTS_PER_SAVE_MAX)
    source: FactSource = "user_noted"
    conversation: Label | None = None


class RecallInsightsBody(Body):
    """What is asked about a subject."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"subject": {"type": "client", "id": "acme"}, "query": "What does the client like?"}]
        }
    )

    subject: SubjectRef
    query: SearchText = ""
    categories: tuple[InsightCategory, ...] | None = None
    limit: int = Field(default=5, ge=1, le=100)
    as_of: datetime | None = None


class FactChangeBody(FactChange):
    """What becomes different of a fact; what is left out stays. The version before is kept."""

    reason: Reason | None = Field(default=None, description="Why, for those who ask later.")


class ConsolidateBody(Body):
    """Which facts are put in order."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"user_id": "alice", "dry_run": True}]})

    user_id: Label | None = Field(default=None, description="null: all users and subjects that have something to do.")
    dry_run: bool = False


class SummarizeBody(Body):
    """Whose facts are summarised, and by which agent's models."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"user_id": "alice", "agent": "assistant"}]})

    user_id: Label
    agent: str = Field(min_length=1, max_length=64, description="The job is its, with its models and its budget.")
    dry_run: bool = Field(default=False, description="Say what would be done; the helper model is paid all the same.")


class DecisionBody(Body):
    """Why a quarantined fact is released or rejected."""

    reason: Reason | None = None


class SubjectBody(Body):
    """A subject, and how it is linked with others; the links that are given take the place of those before."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "Acme Inc.", "attributes": {"city": "Bonn"}, "links": []}]}
    )

    name: Annotated[str, StringConstraints(max_length=200, pattern=ONE_LINE)] = ""
    attributes: Metadata = Field(default_factory=dict)
    links: tuple[SubjectLink, ...] = Field(default=(), max_length=100)
