"""Tenants: created, listed, disabled and enabled by operators."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Path, Query
from pydantic import ConfigDict, Field, StringConstraints

from wayline.contracts import ids
from wayline.contracts.errors import Conflict, NotFound
from wayline.contracts.tenants import (
    REASON_MAX,
    TENANTS_LISTED_MAX,
    WEIGHT_MAX,
    CreateTenant,
    DisableTenant,
    EnableTenant,
    GetTenant,
    ListTenants,
    SetTenantWeight,
    Tenant,
    TenantList,
)
from wayline.gateway.handlers.shared.auditing import note_change
from wayline.gateway.handlers.shared.dependencies import GatewayDependency, Operator, Reader
from wayline.gateway.openapi import fails
from wayline.gateway.paging import PageCursor, Paged, after_name, cursor_of
from wayline.gateway.shapes.body import ONE_LINE, Body
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/tenants", tags=["tenants"], route_class=StrictRoute)

TenantPath: TypeAlias = Annotated[str, Path(pattern=ids.TENANT_PATTERN, examples=["acme"])]


class TenantBody(Body):
    """A tenant to create."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"tenant": "acme"}]})

    tenant: ids.Tenant


class TenantPage(Paged):
    """A page of tenants, by name."""

    tenants: tuple[Tenant, ...]


class DisableBody(Body):
    """The reason why a tenant is disabled, shown to its callers."""

    reason: Annotated[str, StringConstraints(max_length=REASON_MAX, pattern=ONE_LINE)] = ""


class WeightBody(Body):
    """What a tenant's jobs weigh where several tenants wait in one lane."""

    weight: Annotated[int, Field(ge=1, le=WEIGHT_MAX)]


@router.post("", status_code=201, responses=fails(409, 413))
async def create_tenant(body: TenantBody, gateway: GatewayDependency, caller: Operator) -> Tenant:
    """Create a tenant with the bundled agents. Its first key is made with `POST /v1/keys`."""
    note_change(name=body.tenant)
    created = await gateway.bus.ask(CreateTenant(tenant=body.tenant), Tenant)
    gateway.router.forget_tenant(body.tenant)
    return created


@router.get("", responses=fails(400))
async def list_tenants(
    gateway: GatewayDependency,
    caller: Operator,
    limit: Annotated[int, Query(ge=1, le=TENANTS_LISTED_MAX)] = 100,
    cursor: PageCursor = None,
) -> TenantPage:
    """Page through all tenants, by name."""
    after = after_name(cursor)
    found = await gateway.bus.ask(ListTenants(tenant=caller.tenant, limit=limit, after=after), TenantList)
    more = None if found.next_after is None else cursor_of(found.next_after)
    return TenantPage(tenants=found.tenants, next_cursor=more)


@router.get("/{tenant}", responses=fails(404))
async def get_tenant(tenant: TenantPath, gateway: GatewayDependency, caller: Reader) -> Tenant:
    """Show one tenant: any for an operator, its own for every other key."""
    if tenant != caller.tenant and not caller.is_operator:
        raise NotFound("tenant", tenant)
    return await gateway.bus.ask(GetTenant(tenant=tenant), Tenant)


@router.post("/{tenant}/disable", responses=fails(404, 409, 413))
async def disable_tenant(
    tenant: TenantPath, gateway: GatewayDependency, caller: Operator, body: DisableBody | None = None
) -> Tenant:
    """Refuse a tenant's API keys and its new jobs; jobs that run go on to their end."""
    if tenant == caller.tenant:
        raise Conflict(
            f"this key is of tenant {tenant!r} itself and would shut itself out: use an operator's key of another "
            "tenant",
            code="own_tenant",
        )
    changed = await gateway.bus.ask(DisableTenant(tenant=tenant, reason=body.reason if body else ""), Tenant)
    gateway.router.forget_tenant(tenant)
    return changed


@router.post("/{tenant}/enable", responses=fails(404))
async def enable_tenant(tenant: TenantPath, gateway: GatewayDependency, caller: Operator) -> Tenant:
    """Accept a disabled tenant's API keys and jobs again."""
    changed = await gateway.bus.ask(EnableTenant(tenant=tenant), Tenant)
    gateway.router.forget_tenant(tenant)
    return changed


@router.post("/{tenant}/weight", responses=fails(404, 413))
async def set_tenant_weight(
    tenant: TenantPath, body: WeightBody, gateway: GatewayDependency, caller: Operator
) -> Tenant:
    """Set a tenant's weight: while several tenants wait in one lane, its jobs begin in proportion to it."""
    return await gateway.bus.ask(SetTenantWeight(tenant=tenant, weight=body.weight), Tenant)
