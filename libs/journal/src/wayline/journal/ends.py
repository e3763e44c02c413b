"""Whether jobs have ended, as their logs say."""

from __future__ import annotations

from collections.abc import Iterable

from wayline.chassis import Bus
from wayline.journal.log import JobLog
from wayline.journal.record import State


async def have_ended(bus: Bus, tenant: str, job_ids: Iterable[str]) -> bool:
    """Return whether all of these jobs have ended; one whose log is gone counts as ended."""
    for job_id in job_ids:
        head = await JobLog(bus, tenant, job_id).last()
        if head is not None and head.state is not State.ENDED:
            return False
    return True
