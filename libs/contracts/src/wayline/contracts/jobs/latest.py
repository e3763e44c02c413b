"""What a user's newest run of an agent came to."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field
from pydantic_core import from_json

from wayline.contracts.base import Frozen, Request, Usd
from wayline.contracts.ids import NAME_PATTERN
from wayline.contracts.jobs.routes import Route
from wayline.contracts.jobs.status import TERMINAL, Failure, Status
from wayline.contracts.jobs.view import JobView

OUTCOME_MAX = 65_536
"""Characters of an answer, and of any other text of an outcome; the job has the whole."""
JSON_MAX = 1_000_000
"""Characters of an answer that is JSON: a part of it would be none, so it is kept whole, or not at all."""


class Outcome(Frozen):
    """How a run ended."""

    answer: str | None = None
    cut: bool = Field(
        default=False,
        description="The answer is longer: the job has the whole. One that is JSON is kept whole, or left out.",
    )
    partial: bool = False
    reason: str | None = None
    error: Failure | None = None


class RunMetadata(Frozen):
    """What else is known of a run."""

    agent_version: int | None = None
    session_id: str | None = None
    steps: int = 0
    tokens: int = 0
    cost_usd: Usd | None = Field(default=None, description="USD; null when a call's price is unknown.")
    trace_id: str | None = None


class RunResult(Frozen):
    """A user's newest run of an agent: the one that was accepted last, also while it is under way."""

    agent: str
    user_id: str
    job_id: str
    status: Status
    outcome: Outcome | None = Field(default=None, description="None: it has not ended.")
    plan: Route | None = Field(default=None, description="The model that was chosen for it, and why; None: not yet.")
    metadata: RunMetadata = RunMetadata()
    accepted_at: datetime | None = None
    ended_at: datetime | None = None
    links: dict[str, str] = Field(default_factory=dict)

    @classmethod
    def of(cls, job: JobView) -> RunResult | None:
        """Return what is kept of a job; None: it is no run of a user's own."""
        if not job.user_id or job.parent is not None:
            return None
        outcome = _outcome(job) if job.status in TERMINAL else None
        return cls(
            agent=job.agent,
            user_id=job.user_id,
            job_id=job.job_id,
            status=job.status,
            outcome=outcome,
            plan=job.route,
            metadata=RunMetadata(
                agent_version=job.agent_version,
                session_id=job.session_id,
                steps=job.steps,
                tokens=job.usage.total,
                cost_usd=job.cost_usd,
                trace_id=job.trace_id,
            ),
            ended_at=job.ended_at,
        )


class GetLatestRun(Request, subject="agents.latest.{tenant}", replies=RunResult):
    """Ask for a user's newest run of an agent."""

    agent: str = Field(pattern=NAME_PATTERN)
    user_id: str = Field(min_length=1, max_length=128)


def _outcome(job: JobView) -> Outcome:
    answer, error = job.answer, job.error
    return Outcome(
        answer=_kept_answer(answer),
        cut=answer is not None and len(answer) > (JSON_MAX if _is_json(answer) else OUTCOME_MAX),
        partial=job.partial,
        reason=_kept(job.reason),
        error=None if error is None else Failure(code=error.code, message=_kept(error.message) or ""),
    )


def _kept_answer(answer: str | None) -> str | None:
    if answer is None or len(answer) <= OUTCOME_MAX or not _is_json(answer):
        return _kept(answer)
    # JSON has no NUL outside of an escape.
    return answer if len(answer) <= JSON_MAX else None


def _is_json(text: str) -> bool:
    """Return whether a text is one JSON object or array."""
    if text[:1] not in ("{", "["):
        return False
    try:
        from_json(text)
    except ValueError:
        return False
    return True


def _kept(text: str | None) -> str | None:
    """Return a text as a table takes it."""
    return None if text is None else text[:OUTCOME_MAX].replace("\0", "\ufffd")
