"""Whether a job may run now, asked of the router where something is paused or limited that concerns it."""

from __future__ import annotations

from wayline.chassis import Bus, keep_trying
from wayline.chassis.controls import Controls
from wayline.contracts.jobs import Waiting
from wayline.contracts.run_controls import AskPermit, NoteParked, ParkNoted, Permit
from wayline.journal import Job

TOLD = ("pause", "limit")
"""What the router ends that a job waits for."""


class Permits:
    """Every request may be asked again; a router that is away is waited for."""

    def __init__(self, bus: Bus, controls: Controls) -> None:
        self._bus = bus
        self._controls = controls

    async def wait(self, job: Job, *, lane: str, at: int, begun: bool, first: bool) -> Waiting | None:
        """Return what a job waits for before it goes on; None: it may. `at`: the record that made it runnable.

        `first`: its holder has not asked yet. One that took it over does not know how far the one before had come.
        """
        submitted = job.life.submitted
        if submitted is None or not self._controls.any:
            return None
        key_id = job.life.submitted_by.key_id if job.life.submitted_by else None
        about = {"lane": lane, "agent": submitted.agent, "user_id": submitted.user_id, "key_id": key_id}
        if not self._controls.concern(job.tenant, **about, first=first):
            return None
        asked = AskPermit(tenant=job.tenant, job_id=job.job_id, at=at, begun=begun, **about)
        permit = await keep_trying("ask whether a job may run", lambda: self._bus.ask(asked, Permit))
        if permit.granted or permit.why is None:
            return None
        return Waiting(why=permit.why, wait_id=f"{permit.why}-{job.seq}", question=permit.words)

    async def parked(self, tenant: str, job_id: str, *, at: int, lane: str, why: str) -> None:
        """Tell the router that a job is parked, where it wakes it or gives its place to another."""
        if why not in TOLD and not self._controls.limits(tenant):
            return
        noted = NoteParked(tenant=tenant, job_id=job_id, at=at, lane=lane, why=why)
        await keep_trying("tell that a job is parked", lambda: self._bus.ask(noted, ParkNoted))
