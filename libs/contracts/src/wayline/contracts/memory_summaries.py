"""Summaries of what is remembered: several facts about a user become one, which names the facts that it stands for."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from wayline.contracts.base import Frozen, Request
from wayline.contracts.memory import FactId, FactOutcome, Key, Text, UserId, WrittenBy, content_hash_of

SUMMARIES_MAX = 8
"""Of one request."""
SUMMARIZED_MIN = 2
SUMMARIZED_MAX = 12
"""Facts that one summary stands for: a tier has no more."""


class FactVersion(Frozen):
    """Which version of a fact is meant."""

    fact_id: FactId
    version: int = Field(ge=1)


class NewSummary(Frozen):
    """A fact that is to stand for several others."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: Text
    of: tuple[FactVersion, ...] = Field(min_length=SUMMARIZED_MIN, max_length=SUMMARIZED_MAX)


class MemoriesSummarized(Frozen):
    """What became of each summary, in their order."""

    outcomes: tuple[FactOutcome, ...]
    run_id: str | None = Field(default=None, description="By which it can be undone; null: nothing was done.")
    repeated: bool = Field(default=False, description="The stored answer to the same key.")


class SummarizeMemories(Request, subject="memory.summarize.{tenant}", replies=MemoriesSummarized):
    """Have summaries take the places of the facts that they stand for, once for the key; each is judged first."""

    terse = True

    key: Key = Field(description="Of the job; the same key with other summaries is a conflict.")
    user_id: UserId
    summaries: tuple[NewSummary, ...] = Field(min_length=1, max_length=SUMMARIES_MAX)
    written: WrittenBy = WrittenBy()
    dry_run: bool = Field(default=False, description="Say what would be done.")

    def content_hash(self) -> str:
        """Return the hash of what is asked for under the key."""
        return content_hash_of(self.user_id, self.summaries)
