"""Consolidation of what is remembered: what it does to facts and subjects, and how that is undone."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from wayline.contracts.base import Frozen, Request
from wayline.contracts.memory import SubjectRef, UserId


class ConsolidationStep(Frozen):
    """What consolidation does to one fact, and why."""

    what: Literal["expired", "merged", "demoted"]
    fact_id: str
    version: int
    reason: str
    into: str | None = Field(default=None, description="The fact that it was merged into.")


class FoundLink(Frozen):
    """A subject that an insight about another one names."""

    subject: SubjectRef
    other: SubjectRef = Field(description="The one that is named.")
    fact_id: str = Field(description="The insight.")


class Consolidated(Frozen):
    """What consolidation did, or would do."""

    run_id: str | None = Field(default=None, description="By which it can be undone; null: nothing was done.")
    steps: tuple[ConsolidationStep, ...] = ()
    links: tuple[FoundLink, ...] = Field(default=(), description="Subjects that are linked since.")
    more: bool = Field(default=False, description="There is more to do: ask again.")


class ConsolidateMemories(Request, subject="memory.consolidate.{tenant}", replies=Consolidated):
    """Retire what is out of date, merge what is the same, demote what is neither said nor used, link what is named."""

    user_id: UserId | None = Field(default=None, description="Only of this user; None: of all, insights included.")
    dry_run: bool = Field(default=False, description="Say what would be done.")
    by: str = Field(min_length=1, max_length=200)


class ConsolidationUndone(Frozen):
    """How much of a consolidation was undone."""

    undone: int = 0
    skipped: int = Field(default=0, description="Facts that were changed since: they stay as they are.")


class UndoConsolidation(Request, subject="memory.undo.{tenant}", replies=ConsolidationUndone):
    """Bring back what one consolidation took away."""

    run_id: str = Field(min_length=1, max_length=64)
    by: str = Field(min_length=1, max_length=200)
