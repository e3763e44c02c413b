"""Which version of an agent answers a job whose agent's versions have labels. Pure.

The statement `admit` decides it, from what is worked out here: a job has a lot, a number below 1 that is always the
same for it, and the shares of labels lie one after the other between 0 and 1.
"""

from __future__ import annotations

from hashlib import sha256

from wayline.contracts.errors import Reject
from wayline.contracts.jobs import SubmitJob

NO_LOT = 1.0
"""Behind every share: of a job that has no id, because it is only planned."""
LOT_BYTES = 6
"""So many are exact in a double."""


def lot_of(job: SubmitJob, job_id: str) -> float:
    """Return the lot of a job: its session's, so that the first two jobs of a conversation go to one version."""
    key = f"session {job.session_id}" if job.session_id is not None else f"job {job_id}"
    if job.session_id is None and not job_id:
        return NO_LOT
    digest = sha256(f"{job.tenant}/{job.agent}/{key}".encode()).digest()
    return int.from_bytes(digest[:LOT_BYTES]) / 256**LOT_BYTES


def unknown_label(agent: str, label: str) -> Reject:
    """Return the refusal of a job that asks for a label that no version of its agent has."""
    reason = (
        f"no version of agent {agent!r} has the label {label!r}: give it to one, or use one that GET /v1/agents shows"
    )
    return Reject(reason, code="unknown_label", status=404)
