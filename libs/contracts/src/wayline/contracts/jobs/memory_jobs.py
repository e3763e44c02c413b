"""What a job is asked for that answers nobody, and keeps in order what is remembered of its user."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from wayline.contracts.base import Frozen
from wayline.contracts.ids import JobId

MEMORY_TAG = "purpose:memory"
"""Of jobs that answer nobody, and keep in order what is remembered."""
SUMMARY_INPUT = "Summarise what is remembered of me."
EXTRACTED_JOBS_MAX = 50
"""Jobs of one conversation that are read for what lasts at once."""


class Extraction(Frozen):
    """Which jobs of a conversation are read for facts that last, instead of a task of its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    session_id: str | None = Field(default=None, max_length=128, description="The conversation that they are of.")
    jobs: tuple[JobId, ...] = Field(
        min_length=1, max_length=EXTRACTED_JOBS_MAX, description="In their order; of the job's own user."
    )


class Summarizing(Frozen):
    """That facts about the job's user which belong together become fewer, instead of a task of its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dry_run: bool = Field(
        default=False, description="Ask and judge, and change nothing: the helper model is paid all the same."
    )
