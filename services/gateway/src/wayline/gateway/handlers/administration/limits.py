"""Limits of tenants: how many requests and jobs each may send."""

from __future__ import annotations

from dataclasses import replace

import structlog
from fastapi import APIRouter, Response

from wayline.contracts.errors import NotFound
from wayline.contracts.tenants import GetTenant, Tenant
from wayline.gateway.conditions import IfUnchanged, entity_tag
from wayline.gateway.handlers.administration.tenants import TenantPath
from wayline.gateway.handlers.shared.changing import Changeable, tagged
from wayline.gateway.handlers.shared.deleting import was_there
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, Operator, Reader
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails, tags
from wayline.gateway.shapes.limits import (
    LimitsBody,
    LimitsDeleted,
    TenantLimits,
    default_limits,
    limits_view,
)
from wayline.gateway.strict_json import StrictRoute

log = structlog.get_logger()

router = APIRouter(prefix="/v1/tenants", tags=["tenants"], route_class=StrictRoute)


@router.get("/{tenant}/limits", responses=tags(404))
async def get_limits(
    tenant: TenantPath, gateway: GatewayDependency, caller: Reader, response: Response
) -> TenantLimits:
    """Show the limits of a tenant and the rates that hold: of any for an operator, its own for every other key."""
    if tenant != caller.tenant and not caller.is_operator:
        raise NotFound("tenant", tenant)
    found = await gateway.limits.get(tenant)
    return tagged(response, limits_view(tenant, found, default_limits(gateway.settings)), _tag(found))


@router.put("/{tenant}/limits", responses=tags(404, 412, 413))
async def put_limits(
    *,
    tenant: TenantPath,
    limits: LimitsBody,
    gateway: GatewayDependency,
    caller: Operator,
    condition: IfUnchanged,
    response: Response,
) -> TenantLimits:
    """Set how many requests and jobs a tenant, each of its keys and each of its users may send; it holds in seconds."""
    await gateway.bus.ask(GetTenant(tenant=tenant), Tenant)
    async with LIMITS.changing(gateway, replace(caller, tenant=tenant), tenant, condition):
        await gateway.limits.put(tenant, limits)
        saved = await _saved(gateway, caller, tenant)
    gateway.keys.forget_all()
    log.info("limits set", tenant=tenant, by=caller.name)
    return tagged(response, limits_view(tenant, saved, default_limits(gateway.settings)), _tag(saved))


@router.delete("/{tenant}/limits", responses=fails(404, 412))
async def delete_limits(
    tenant: TenantPath, gateway: GatewayDependency, caller: Operator, condition: IfUnchanged
) -> LimitsDeleted:
    """Delete the limits of a tenant: those of the installation hold again."""
    async with LIMITS.changing(gateway, replace(caller, tenant=tenant), tenant, condition):
        deleted = LimitsDeleted(deleted=await gateway.limits.delete(tenant))
    gateway.keys.forget_all()
    return was_there(deleted, "limits of tenant", tenant)


def _tag(limits: LimitsBody | None) -> str:
    return entity_tag(None if limits is None else limits.model_dump(mode="json", exclude_unset=True))


async def _saved(gateway: Gateway, caller: Caller, tenant: str) -> LimitsBody:
    found = await gateway.limits.get(tenant)
    if found is None:
        raise NotFound("limits of tenant", tenant)
    return found


LIMITS = Changeable("limits", _saved, _tag)
