"""Creates, lists, disables and enables tenants, keeps their settings, and counts what they store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog

from wayline.contracts import ids
from wayline.contracts.agents import AgentConfig
from wayline.contracts.errors import Conflict, NotFound, Reject, Retry
from wayline.contracts.tenant_settings import ChangeSettings, GetSettings, SettingsInForce
from wayline.contracts.tenants import (
    CreateTenant,
    DisableTenant,
    EnableTenant,
    GetTenant,
    ListTenants,
    NoteStored,
    SetTenantWeight,
    StoredNoted,
    Tenant,
    TenantList,
)
from wayline.router.tenants.known_tenants import KnownTenants
from wayline.router.tenants.settings_table import SettingsTable
from wayline.router.tenants.shares import Shares
from wayline.router.tenants.tenant_table import TenantTable

log = structlog.get_logger()


class TenantHandlers:
    """Answers those who administer tenants; a tenant is created with the `bundled` agents."""

    def __init__(
        self, table: TenantTable, *, shares: Shares, bundled: dict[str, AgentConfig], tenants_max: int
    ) -> None:
        self._table = table
        self._shares = shares
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
        if await self._table.count() >= self._tenants_max:
            raise Reject(
                f"there are {self._tenants_max} tenants already: raise WAYLINE_ROUTER_TENANTS_MAX",
                code="too_many_tenants",
                status=409,
            )
        created = await self._table.create(tenant, self._bundled)
        if created is None:
            raise Conflict(f"tenant {tenant!r} exists already", code="tenant_exists")
        log.info("tenant created", tenant=tenant)
        return created

    async def on_get(self, request: GetTenant) -> Tenant:
        """Return one tenant, and whether it may begin jobs. Raises NotFound."""
        found = _found(request.tenant, await self._table.get(request.tenant))
        try:
            return found.model_copy(update={"full": await self._shares.why_full(request.tenant)})
        except Retry:
            # Nobody can look right now; a job that is too much is refused where it is let in.
            return found

    async def on_list(self, request: ListTenants) -> TenantList:
        """Return a page of all tenants."""
        found = await self._table.list(after=request.after, limit=request.limit + 1)
        page = tuple(found[: request.limit])
        return TenantList(tenants=page, next_after=page[-1].tenant if len(found) > request.limit else None)

    async def on_disable(self, request: DisableTenant) -> Tenant:
        """Disable a tenant; one that is disabled keeps its date and gets the new reason."""
        return _changed(request.tenant, await self._table.disable(request.tenant, request.reason))

    async def on_enable(self, request: EnableTenant) -> Tenant:
        """Enable a tenant."""
        return _changed(request.tenant, await self._table.enable(request.tenant))

    async def on_set_weight(self, request: SetTenantWeight) -> Tenant:
        """Set a tenant's weight: it counts from the next ticket that is given its turn."""
        changed = _found(request.tenant, await self._table.set_weight(request.tenant, request.weight))
        log.info("tenant weight set", tenant=request.tenant, weight=changed.weight)
        return changed

    async def on_note_stored(self, note: NoteStored) -> StoredNoted:
        """Count bytes that another service has stored, and return whether the tenant's running jobs must end."""
        self._shares.note_stored(note.tenant, note.stored_bytes)
        try:
            return StoredNoted(over=not await self._shares.may_store(note.tenant))
        except Retry:
            # The bytes are counted; whether they are too many is seen at the next report about this tenant.
            return StoredNoted()


class SettingsHandlers:
    """Answers requests for a tenant's settings."""

    def __init__(
        self,
        table: SettingsTable,
        *,
        tenants: KnownTenants,
        require_usable: Callable[[str, str], Awaitable[None]],
    ) -> None:
        self._table = table
        self._tenants = tenants
        self._require_usable = require_usable
        """Raises Reject for a model that a tenant cannot use."""

    async def on_get(self, request: GetSettings) -> SettingsInForce:
        """Return a tenant's settings."""
        return await self._table.get(request.tenant)

    async def on_change(self, request: ChangeSettings) -> SettingsInForce:
        """Change settings; two changes at once that name different settings both count. Raises Reject."""
        await self._tenants.require(request.tenant)
        if request.change.default_model is not None:
            await self._require_usable(request.tenant, request.change.default_model)
        return await self._table.change(request.tenant, request.change)


def _found(tenant: str, found: Tenant | None) -> Tenant:
    if found is None:
        raise NotFound("tenant", tenant)
    return found


def _changed(tenant: str, found: Tenant | None) -> Tenant:
    changed = _found(tenant, found)
    log.info("tenant changed", tenant=tenant, disabled=changed.disabled_at is not None)
    return changed
