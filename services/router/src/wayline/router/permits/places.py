"""What the beginning and the end of a job do to the places among those that may run."""

from __future__ import annotations

from collections.abc import Callable

from wayline.chassis.controls import Controls
from wayline.contracts.events import JobSubmitted
from wayline.contracts.jobs import Failure
from wayline.router.permits.permit_table import Claim, PermitTable

TOO_MANY_RUNNING = "too_many_running"


class RunPlaces:
    """Where nothing is paused or limited, nothing is read and nothing is written."""

    def __init__(self, controls: Controls, permits: PermitTable, *, freed: Callable[[], None]) -> None:
        self._controls = controls
        self._permits = permits
        self._freed = freed

    async def refusal(self, first: JobSubmitted) -> Failure | None:
        """Give a new job its place where it would rather be refused than wait; return why it is refused."""
        if not self._controls.limits(first.tenant):
            return None
        job, by = first.job, first.submitted_by
        claim = Claim(first.job_id, job.options.lane, job.agent, job.user_id, by.key_id if by else None)
        full = await self._permits.take(first.tenant, claim)
        return None if full is None else Failure(code=TOO_MANY_RUNNING, message=f"{full.words}: submit it again later")

    async def end(self, tenant: str, job_id: str) -> None:
        """Take the place of a job that has ended, for the next one; a second time changes nothing."""
        if self._controls.any and await self._permits.end(tenant, job_id):
            self._freed()
