"""Pauses and limits in Postgres, and what every process is told of them."""

from __future__ import annotations

from importlib.resources import files

import structlog

from wayline.chassis.connection.bus import AWAY
from wayline.chassis.controls import Controls, limit_subject, pause_subject
from wayline.contracts.errors import Reject
from wayline.contracts.run_controls import (
    PAUSES_MAX,
    RUNNING_LIMITS_MAX,
    Pause,
    PauseKind,
    PutPause,
    RunningLimit,
    RunningLimitInForce,
    Whose,
)
from wayline.store import Queries, Store

log = structlog.get_logger()


class ControlTable:
    """One row a pause, one row a limit. The rows decide; what is told of them may come a moment later."""

    def __init__(self, store: Store, controls: Controls) -> None:
        self._store = store
        self._controls = controls
        self._sql = Queries.load(files("wayline.router.permits").joinpath("queries.sql"))

    async def put_pause(self, asked: PutPause) -> Pause:
        """Save a pause, and tell of it. Raises Reject where a tenant has too many."""
        tenant = owner(asked.kind, asked.tenant)
        async with self._store.system() as conn:
            if await conn.fetchval(self._sql.count_pauses, tenant, asked.kind, asked.name) >= PAUSES_MAX:
                raise Reject(f"{PAUSES_MAX} agents are paused already", code="too_many_pauses", status=409)
            given = asked.kind, tenant, asked.name, asked.reason, asked.by, asked.now
            row = await conn.fetchrow(self._sql.put_pause, *given)
        assert row is not None
        pause = Pause(**dict(row))
        await self._tell(pause_subject(pause.kind, pause.tenant, pause.name), pause)
        return pause

    async def pauses(self, tenant: str) -> tuple[Pause, ...]:
        """Return what is paused for a tenant: lanes, itself, agents."""
        async with self._store.system() as conn:
            return tuple(Pause(**dict(row)) for row in await conn.fetch(self._sql.list_pauses, tenant))

    async def end_pause(self, kind: PauseKind, tenant: str, name: str) -> bool:
        """End a pause; return whether there was one."""
        tenant = owner(kind, tenant)
        async with self._store.system() as conn:
            status = await conn.execute(self._sql.end_pause, kind, tenant, name)
        await self._tell(pause_subject(kind, tenant, name), None)
        return not status.endswith(" 0")

    async def put_limit(self, tenant: str, limit: RunningLimit) -> RunningLimitInForce:
        """Save a limit, and tell of it. Raises Reject where a tenant has too many."""
        async with self._store.tenant(tenant) as conn:
            if await conn.fetchval(self._sql.count_running_limits, tenant, limit.whose, limit.name) >= (
                RUNNING_LIMITS_MAX
            ):
                raise Reject(f"a tenant has {RUNNING_LIMITS_MAX} limits at most", code="too_many_limits", status=409)
            given = limit.whose, limit.name, limit.max_running, limit.when_full
            await conn.execute(self._sql.put_running_limit, tenant, *given)
        saved = RunningLimitInForce(tenant=tenant, **dict(limit))
        await self._tell(limit_subject(tenant, limit.whose, limit.name), saved)
        return saved

    async def limits(self, tenant: str) -> tuple[RunningLimitInForce, ...]:
        """Return a tenant's limits, and how many jobs count in each."""
        rows = await self._store.fetch(tenant, self._sql.list_running_limits, tenant)
        return tuple(RunningLimitInForce(**dict(row)) for row in rows)

    async def delete_limit(self, tenant: str, whose: Whose, name: str) -> bool:
        """Take a limit away; return whether there was one."""
        status = await self._store.execute(tenant, self._sql.delete_running_limit, tenant, whose, name)
        await self._tell(limit_subject(tenant, whose, name), None)
        return not status.endswith(" 0")

    async def tell_again(self) -> None:
        """Tell what a router did not get to tell, or told in another order than it was saved."""
        async with self._store.system() as conn:
            pauses = [Pause(**dict(row)) for row in await conn.fetch(self._sql.all_pauses)]
            limits = [RunningLimitInForce(**dict(row)) for row in await conn.fetch(self._sql.all_running_limits)]
        saved: dict[str, Pause | RunningLimitInForce] = {
            pause_subject(pause.kind, pause.tenant, pause.name): pause for pause in pauses
        }
        saved |= {limit_subject(limit.tenant, limit.whose, limit.name): limit for limit in limits}
        stored = await self._controls.stored()
        for subject in stored.keys() - saved.keys():
            await self._tell(subject, None)
        for subject, value in saved.items():
            if stored.get(subject) != value.model_dump_json().encode():
                await self._tell(subject, value)
        await self._controls.clear_ended()

    async def _tell(self, subject: str, value: Pause | RunningLimitInForce | None) -> None:
        try:
            await self._controls.publish(subject, value)
        except AWAY as error:
            log.warning("put off", what="telling of a pause or limit", why=str(error) or type(error).__name__)


def owner(kind: PauseKind, tenant: str) -> str:
    """Return the tenant of a pause's row: a lane is of none."""
    return "" if kind == "lane" else tenant
