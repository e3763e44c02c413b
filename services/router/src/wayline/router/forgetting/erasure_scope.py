"""What one request to a store is about."""

from __future__ import annotations

from dataclasses import dataclass

from wayline.contracts.memory import SubjectRef


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureScope:
    """A user or a subject, or a batch of jobs."""

    tenant: str
    user_id: str | None = None
    subject_ref: SubjectRef | None = None
    job_ids: tuple[str, ...] = ()
    with_sessions: bool = False
    """Whether the sessions of these jobs are erased, too."""
