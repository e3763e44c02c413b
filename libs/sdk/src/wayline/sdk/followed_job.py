"""What a job's events say of it: whether it waits, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from wayline.contracts import ids
from wayline.contracts.errors import Conflict
from wayline.contracts.events import TERMINAL_TYPES
from wayline.contracts.jobs import JobView, SubmitJob, Waiting
from wayline.sdk.errors import JobTimeout, JobWaits

CLAIM = "$claim"
"""In the place of a text that the log keeps elsewhere, because it is long."""
FOR_PEOPLE = frozenset({"needs_decision", "approval", "budget", "tool_results"})
"""What a job waits for until a person, or its caller, acts."""
SAME = ("agent", "input", "session_id", "user_id")
"""What two submissions of one job have in common."""
OF_ITS_END = ("steps", "usage", "cost_usd", "answer", "citations", "partial", "reason", "error")


@dataclass
class FollowedJob:
    """A job, by the events that were read of it."""

    wanted: SubmitJob
    """What was asked for under its id."""
    submitted: dict[str, Any] | None = None
    end: dict[str, Any] | None = None
    waiting: Waiting | None = None

    def add(self, event: dict[str, Any]) -> None:
        """Note what an event says. Raises Conflict where the job is another one."""
        kind = event["type"]
        if kind == "job.submitted":
            self._require_same(event["job"])
            self.submitted = event
        elif kind == "job.parked":
            self.waiting = Waiting.model_validate(event["waiting"], extra="ignore")
        elif kind == "job.resumed":
            self.waiting = None
        elif kind in TERMINAL_TYPES:
            self.end = event

    @property
    def job_id(self) -> str:
        return self.wanted.job_id or ""

    def _require_same(self, submitted: dict[str, Any]) -> None:
        try:
            first = SubmitJob.model_validate({**submitted, "tenant": self.wanted.tenant}, extra="ignore")
        except ValidationError:
            # A part of it is kept elsewhere: nothing can be compared.
            return
        # Not by the hash of its content: a build with another option finds another one.
        different = [name for name in SAME if getattr(first, name) != getattr(self.wanted, name)]
        if different:
            taken = f"the job {self.job_id} is already another job, of another {', '.join(different)}"
            raise Conflict(f"{taken}: choose another job_id")

    def view(self) -> JobView:
        """Return the job as it ended."""
        assert self.end is not None
        first = self.submitted or {}
        asked = first.get("job", {})
        found = {name: self.end.get(name) for name in OF_ITS_END} | {
            "job_id": self.job_id,
            "status": self.end["type"].removeprefix("job."),
            "agent": asked.get("agent", ""),
            "session_id": asked.get("session_id"),
            "user_id": asked.get("user_id"),
            "created_at": first.get("at"),
            "ended_at": self.end["at"],
            "trace_id": ids.trace_id(self.wanted.tenant, self.job_id),
        }
        return view_of({name: value for name, value in found.items() if value is not None})

    def overdue(self, timeout_s: float) -> JobTimeout:
        """Return the error that says why there is no end yet."""
        if self.waiting is None or self.waiting.why not in FOR_PEOPLE:
            return JobTimeout(self.job_id, timeout_s=timeout_s)
        return JobWaits(self.job_id, timeout_s=timeout_s, question=_question(self.waiting))


def view_of(job: dict[str, Any]) -> JobView:
    """Read a job as it is sent, without texts that are kept elsewhere."""
    here = {name: value for name, value in job.items() if not (isinstance(value, dict) and CLAIM in value)}
    return JobView.model_validate(here, extra="ignore")


def _question(waiting: Waiting) -> str:
    """Return what a person is asked."""
    approvals = [one.reason or f"May {one.tool} be called?" for one in waiting.approvals]
    approvals += [f"What does {one.tool} return (call {one.key})?" for one in waiting.tool_calls]
    return waiting.question or " ".join(approvals) or f"It waits for a person ({waiting.why})."
