"""Older submissions of a job's id, which the bus accepted first and no router has ended with."""

from __future__ import annotations

from wayline.chassis import Bus, Delivery
from wayline.journal import leader_next
from wayline.router.admission.read_submission import read_partial

STREAM = "SUBMIT"
OLDER_MAX = 1_000
"""Submissions of a tenant that are looked at: those that routers have in hand, or that come to one again."""


async def lies_before(bus: Bus, tenant: str, job_id: str, *, before: int) -> bool:
    """Return whether an older submission of this id is still there: the job is that one's. Raises Unavailable."""
    subject, start = f"jobs.submit.{tenant}", 1
    for _ in range(OLDER_MAX):
        stored = await leader_next(bus, STREAM, subject, start=start)
        if stored is None or stored.sequence >= before:
            return False
        older = Delivery(STREAM, "", stored.sequence, 1, subject, stored.stored_ns, stored.headers, stored.body)
        found = read_partial(older)
        if found.has_log and found.job_id == job_id:
            return True
        start = stored.sequence + 1
    return False
