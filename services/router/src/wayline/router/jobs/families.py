"""Jobs that other jobs start: whose budget they share, and whom their end wakes.

The logs say who has ended, as with the turns of a session: the executor that parks a job looks whether its children
have, and so does the router when a child is settled. Either side alone suffices, and both name the parked record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wayline.chassis import Bus
from wayline.contracts.events import StartableAgent
from wayline.contracts.jobs import PARENT_CANCELLED, Cancel, RunJob, Signal
from wayline.journal import Head, JobLog, State, have_ended
from wayline.router.admission.conditions import Admitted
from wayline.store import Store


class Families:
    """The jobs above and below a job."""

    def __init__(self, bus: Bus, store: Store) -> None:
        self._bus = bus
        self._store = store

    async def adopt(self, tenant: str, job_id: str, admitted: Admitted, *, parent_id: str) -> Admitted:
        """Let a job share its parent's budget, once, and return what it may spend of that."""
        row = await self._store.fetchrow(tenant, self._store.sql.adopt, tenant, job_id, parent_id)
        if row is None:
            row = await self._store.fetchrow(tenant, self._store.sql.cap_of, tenant, job_id)
        assert row is not None
        return replace(admitted, cap_usd=row["cap_usd"], cap_set=row["cap_set"], shares_cap=True)

    async def wake_ticket(self, tenant: str, job_id: str) -> RunJob | None:
        """Return the ticket of the job that waits for an ended one, where everything that it waits for has ended."""
        parent_id = await self._store.fetchval(tenant, self._store.sql.parent_of, tenant, job_id)
        if parent_id is None:
            return None
        head = await JobLog(self._bus, tenant, parent_id).last()
        children = waits_for(head)
        if head is None or job_id not in children:
            return None
        others = [child for child in children if child != job_id]
        if not await have_ended(self._bus, tenant, others):
            return None
        return RunJob(tenant=tenant, lane=head.lane, job=parent_id, at=head.sequence)

    async def stop(self, tenant: str, job_id: str, why: str) -> None:
        """Tell a job that another one started to stop; a repeat means nothing to it."""
        cancel = Signal(tenant=tenant, job_id=job_id, signal=Cancel(reason=why, by="parent"))
        await self._bus.publish(cancel, msg_id=f"{tenant}/{job_id}:stop")

    async def cancel_children(self, tenant: str, job_id: str) -> None:
        """Cancel what a cancelled job is parked for: its children may hold the slots that it needs to do so itself."""
        for child in waits_for(await JobLog(self._bus, tenant, job_id).last()):
            await self.stop(tenant, child, PARENT_CANCELLED)

    async def startable(self, tenant: str, names: Sequence[str]) -> tuple[StartableAgent, ...]:
        """Return the agents of these names that there are, in this order, as models are told of them."""
        if not names:
            return ()
        rows = await self._store.fetch(tenant, self._store.sql.describe_agents, tenant, list(names))
        described = {row["name"]: row["description"] or "" for row in rows}
        known = (name for name in dict.fromkeys(names) if name in described)
        return tuple(StartableAgent(name=name, description=described[name]) for name in known)


def waits_for(head: Head | None) -> list[str]:
    """Return the jobs for whose end a job is parked, as its last record says."""
    if head is None or head.state is not State.PARKED:
        return []
    last = head.values[-1]
    return last["waiting"].get("children", []) if last["type"] == "job.parked" else []
