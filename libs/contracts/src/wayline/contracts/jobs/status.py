"""How far a job is, and why one failed."""

from __future__ import annotations

from enum import StrEnum

from wayline.contracts.base import Frozen


class Status(StrEnum):
    """How far a job is."""

    QUEUED = "queued"
    RUNNING = "running"
    PARKED = "parked"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})


class Failure(Frozen):
    """Why a job or a call did not succeed."""

    code: str
    message: str
