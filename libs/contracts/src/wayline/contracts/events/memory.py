"""What a conversation leaves to be remembered: the facts that a helper model found in it, and what became of them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from wayline.contracts.events.event import Event
from wayline.contracts.memory import FACTS_PER_SAVE_MAX, FactOutcome, NewFact
from wayline.contracts.memory_summaries import SUMMARIES_MAX, NewSummary


class ExtractionAsked(Event):
    """The job reads what its user said in other jobs: an executor that knows of no such jobs leaves it."""

    type: Literal["extraction.asked"] = "extraction.asked"
    jobs: tuple[str, ...]


class MemoryExtracted(Event):
    """A helper model named the facts that last in what a user had said: paid for, and not yet judged or kept."""

    type: Literal["memory.extracted"] = "memory.extracted"
    facts: tuple[NewFact, ...] = Field(default=(), max_length=FACTS_PER_SAVE_MAX)
    unsaid: tuple[int, ...] = Field(default=(), description="The facts, from 0, of whose words too few were said.")
    tainted_by: tuple[str, ...] = Field(default=(), description="Whose words of strangers the conversation had read.")
    read: tuple[str, ...] = Field(default=(), description="The jobs whose words were read.")
    reason: str | None = Field(default=None, description="Why there are no facts, where that was not the model's word.")


class SummaryAsked(Event):
    """The job summarises what is remembered of its user: an executor that knows of no such jobs leaves it."""

    type: Literal["summary.asked"] = "summary.asked"
    dry_run: bool = False


class MemorySummarized(Event):
    """A helper model wrote summaries of facts: paid for, and not yet judged or kept."""

    type: Literal["memory.summarized"] = "memory.summarized"
    summaries: tuple[NewSummary, ...] = Field(default=(), max_length=SUMMARIES_MAX)
    shown: tuple[str, ...] = Field(default=(), description="The facts that the helper was shown.")
    reason: str | None = Field(default=None, description="Why there are none, where that was not the model's word.")


class MemorySaved(Event):
    """What became of the extracted facts or of the summaries, each in its place."""

    type: Literal["memory.saved"] = "memory.saved"
    outcomes: tuple[FactOutcome, ...] = ()
    reason: str | None = Field(default=None, description="Why none was judged.")
    run_id: str | None = Field(default=None, description="By which summaries can be undone.")
