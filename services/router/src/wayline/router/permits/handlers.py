"""Answers who pauses and limits, and executors that ask whether a job may run."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

from wayline.contracts.errors import NotFound, Reject
from wayline.contracts.jobs import Lane
from wayline.contracts.run_controls import (
    AskPermit,
    CheckPlace,
    DeleteRunningLimit,
    EndPause,
    ListPauses,
    ListRunningLimits,
    NoteParked,
    ParkNoted,
    Pause,
    PauseEnded,
    PauseList,
    Permit,
    PutPause,
    PutRunningLimit,
    RunningLimitDeleted,
    RunningLimitInForce,
    RunningLimitList,
)
from wayline.router.permits.control_table import ControlTable
from wayline.router.permits.permit_table import Claim, PermitTable
from wayline.router.tenants.known_tenants import KnownTenants

LANES = get_args(Lane)


class PermitHandlers:
    """`changed` is called where jobs may go on now."""

    def __init__(
        self, table: ControlTable, permits: PermitTable, *, tenants: KnownTenants, changed: Callable[[], None]
    ) -> None:
        self._table = table
        self._permits = permits
        self._tenants = tenants
        self._changed = changed

    async def on_put_pause(self, asked: PutPause) -> Pause:
        """Pause something. Raises NotFound and Reject."""
        await self._tenants.require(asked.tenant)
        if asked.kind == "lane" and asked.name not in LANES:
            raise Reject(f"no lane {asked.name!r}: there are {', '.join(LANES)}", code="unknown_lane", status=404)
        if asked.kind == "tenant" and asked.name != asked.tenant:
            raise NotFound("tenant", asked.name)
        return await self._table.put_pause(asked)

    async def on_list_pauses(self, asked: ListPauses) -> PauseList:
        """Return what is paused for a tenant."""
        return PauseList(pauses=await self._table.pauses(asked.tenant))

    async def on_end_pause(self, asked: EndPause) -> PauseEnded:
        """Let what was paused go on."""
        ended = await self._table.end_pause(asked.kind, asked.tenant, asked.name)
        self._changed()
        return PauseEnded(ended=ended)

    async def on_put_limit(self, asked: PutRunningLimit) -> RunningLimitInForce:
        """Limit how many jobs run at once. Raises NotFound and Reject."""
        await self._tenants.require(asked.tenant)
        saved = await self._table.put_limit(asked.tenant, asked.limit)
        self._changed()
        return saved

    async def on_list_limits(self, asked: ListRunningLimits) -> RunningLimitList:
        """Return a tenant's limits."""
        return RunningLimitList(limits=await self._table.limits(asked.tenant))

    async def on_delete_limit(self, asked: DeleteRunningLimit) -> RunningLimitDeleted:
        """Take a limit away."""
        deleted = await self._table.delete_limit(asked.tenant, asked.whose, asked.name)
        self._changed()
        return RunningLimitDeleted(deleted=deleted)

    async def on_ask(self, asked: AskPermit) -> Permit:
        """Say whether a job may run now."""
        return await self._permits.ask(asked)

    async def on_check(self, asked: CheckPlace) -> Permit:
        """Say whether a new job would be refused for a limit that is full."""
        claim = Claim("", "", asked.agent, asked.user_id, asked.key_id)
        if not await self._permits.refuses(asked.tenant):
            return Permit(granted=True, refuses=False)
        full = await self._permits.full(asked.tenant, claim)
        return Permit(granted=True) if full is None else Permit(granted=False, why="limit", words=full.words)

    async def on_parked(self, noted: NoteParked) -> ParkNoted:
        """Take the place of a parked job, for the next one."""
        await self._permits.parked(noted)
        self._changed()
        return ParkNoted()
