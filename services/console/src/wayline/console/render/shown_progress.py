"""What a job does right now, as the API tells it, in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ShownProgress:
    """One of the API's nine states, and the step that it is of."""

    state: str
    step: int = 0
    """From 1; 0: none has begun."""
    of: int | None = None
    """The steps that the job may take."""
    message: str = ""

    @property
    def key(self) -> str:
        """Name the state of this step: what the stream says of the same one says more."""
        return f"{self.step}/{self.state}"

    @property
    def words(self) -> str:
        """Return it as it is read: `Step 2 of 5: Searching the web`."""
        message = self.message or self.state.replace("_", " ")
        of = f" of {self.of}" if self.of else ""
        return f"Step {self.step}{of}: {message}" if self.step else message


def told_progress(told: Mapping[str, Any] | None) -> ShownProgress | None:
    """Return what a job's `progress` begins or goes on with; None: it has none, or ends something."""
    if not told or told.get("phase") == "completed":
        return None
    return ShownProgress(told["state"], told.get("iteration") or 0, told.get("of"), told.get("message") or "")


def queue_words(place: Mapping[str, Any] | None) -> str:
    """Return a job's place in its queue as it is read; without one, that it waits."""
    if not place:
        return "Waiting for an executor to take it"
    return f"Number {place['position']:,} of {place['queued']:,} in the queue {place['lane']}"
