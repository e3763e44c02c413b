"""Tenants: created with the bundled agents, listed, disabled and enabled again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog

from wayline.contracts import ids
from wayline.contracts.agents import AgentConfig
from wayline.contracts.errors import Conflict, NotFound, Reject, Retry
from wayline.contracts.tenant_settings import INHERITED
from wayline.contracts.tenants import (
    CreateTenant,
    DisableTenant,
    EnableTenant,
    GetTenant,
    ListTenants,
    Tenant,
    TenantList,
)
from wayline.store import Record, Store, TenantInvalid

log = structlog.get_logger()

WhyFull = Callable[[str], Awaitable[str | None]]
"""Says why a tenant may begin no more jobs for now."""


async def _nobody_looks(_: str) -> str | None:
    return None


class Tenants:
    """The table of tenants, for those who administer them."""

    def __init__(
        self, store: Store, *, bundled: dict[str, AgentConfig], tenants_max: int, why_full: WhyFull = _nobody_looks
    ) -> None:
        self._store = store
        self._why_full = why_full
        self._bundled = bundled
        self._tenants_max = tenants_max

    async def on_create(self, request: CreateTenant) -> Tenant:
        """Create a tenant together with its agents. Raises Conflict for one that exists."""
        tenant = request.tenant
        if not ids.is_tenant(tenant):
            raise Reject(
                f"{tenant!r} cannot name a tenant: use up to 40 lower-case letters, digits and inner hyphens",
                code="invalid_tenant",
                status=422,
            )
        async with self._store.system() as conn:
            if await conn.fetchval(self._store.sql.count_tenants) >= self._tenants_max:
                raise Reject(
                    f"there are {self._tenants_max} tenants already: raise WAYLINE_ROUTER_TENANTS_MAX",
                    code="too_many_tenants",
                    status=409,
                )
        async with self._store.tenant(tenant) as conn:
            row = await conn.fetchrow(self._store.sql.create_tenant, tenant)
            if row is None:
                raise Conflict(f"tenant {tenant!r} exists already", code="tenant_exists")
            for name, config in self._bundled.items():
                await conn.execute(self._store.sql.seed_agent, name, config.model_dump(mode="json"), [*INHERITED])
        log.info("tenant created", tenant=tenant)
        return _tenant(row)

    async def on_get(self, request: GetTenant) -> Tenant:
        """Return one tenant, and whether it may begin jobs. Raises NotFound."""
        try:
            row = await self._store.fetchrow(request.tenant, self._store.sql.get_tenant, request.tenant)
        except TenantInvalid:
            row = None
        found = _found(request.tenant, row)
        try:
            return found.model_copy(update={"full": await self._why_full(request.tenant)})
        except Retry:
            # Nobody can look right now; a job that is too much is refused where it is let in.
            return found

    async def on_list(self, request: ListTenants) -> TenantList:
        """Return a page of all tenants."""
        async with self._store.system() as conn:
            rows = await conn.fetch(self._store.sql.list_tenants, request.after, request.limit + 1)
        page = tuple(_tenant(row) for row in rows[: request.limit])
        return TenantList(tenants=page, next_after=page[-1].tenant if len(rows) > request.limit else None)

    async def on_disable(self, request: DisableTenant) -> Tenant:
        """Disable a tenant; one that is disabled keeps its date and gets the new reason."""
        return await self._change(request.tenant, self._store.sql.disable_tenant, request.reason)

    async def on_enable(self, request: EnableTenant) -> Tenant:
        """Enable a tenant."""
        return await self._change(request.tenant, self._store.sql.enable_tenant)

    async def _change(self, tenant: str, sql: str, *args: str) -> Tenant:
        try:
            row = await self._store.fetchrow(tenant, sql, tenant, *args)
        except TenantInvalid:
            row = None
        changed = _found(tenant, row)
        log.info("tenant changed", tenant=tenant, disabled=changed.disabled_at is not None)
        return changed


def _found(tenant: str, row: Record | None) -> Tenant:
    if row is None:
        raise NotFound("tenant", tenant)
    return _tenant(row)


def _tenant(row: Record) -> Tenant:
    return Tenant(**dict(row))
