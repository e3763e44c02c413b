"""API keys: created and shown once, listed, revoked."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, TypeAlias

import structlog
from fastapi import APIRouter, Path, Query, Response

from wayline.contracts import ids
from wayline.contracts.errors import Conflict, NotFound
from wayline.contracts.tenants import GetTenant, Tenant
from wayline.gateway.conditions import IfUnchanged, entity_tag
from wayline.gateway.errors import Forbidden
from wayline.gateway.handlers.shared.auditing import note_change, note_tenant
from wayline.gateway.handlers.shared.changing import Changeable, tagged
from wayline.gateway.handlers.shared.dependencies import (
    Admin,
    Gateway,
    GatewayDependency,
    acting_as,
    require_operator_for,
)
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails, tags
from wayline.gateway.paging import PageCursor, PageLimit, after_moment, first_page, moment_key
from wayline.gateway.shapes.keys import Key, KeyBody, KeyChanges, KeyCreated, KeyPage, KeyRevoked
from wayline.gateway.strict_json import StrictRoute

log = structlog.get_logger()

router = APIRouter(prefix="/v1/keys", tags=["keys"], route_class=StrictRoute)

KeyPath: TypeAlias = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$", examples=["1f2e3d4c5b6a7988"])]
TenantQuery: TypeAlias = Annotated[
    ids.Tenant | None, Query(description="Whose keys; left out: those of the caller's own tenant.", examples=["acme"])
]


@router.post("", status_code=201, responses=fails(404, 409, 413))
async def create_key(body: KeyBody, gateway: GatewayDependency, caller: Admin) -> KeyCreated:
    """Create an API key. Its `key` is in this answer and nowhere else.

    Needs the scope `admin`; for another tenant's key, or for one with the scope `operator`, the scope `operator`.
    """
    tenant = body.tenant or caller.tenant
    require_operator_for(caller, tenant)
    more = sorted(set(body.scopes) - caller.scopes)
    if more and not caller.is_operator:
        raise Forbidden(f"a key cannot give more than it has: this one lacks {', '.join(more)}")
    if caller.is_open and "operator" not in body.scopes and not await gateway.keys.any_operator():
        raise Conflict(
            "from the first key on every request needs one, so the first must be able to create others: give it the "
            "scope operator (`wayline keys create --name operator --scopes read,write,admin,operator`)",
            code="first_key_needs_operator",
        )
    await gateway.bus.ask(GetTenant(tenant=tenant), Tenant)
    await note_tenant(gateway, tenant)
    created = await gateway.keys.create(
        tenant,
        body.name,
        scopes=body.scopes,
        expires_at=body.expires_at,
        user_id=acting_as(caller, body.user_id),
        limits=body.limits,
        most=gateway.settings.keys_max,
    )
    note_change(name=created.id)
    log.info("API key created", key=created.id, tenant=tenant, scopes=list(body.scopes), by=caller.name)
    return created


@router.get("", responses=fails(400))
async def list_keys(
    *,
    gateway: GatewayDependency,
    caller: Admin,
    tenant: TenantQuery = None,
    revoked: Annotated[bool, Query(description="Also those that were revoked or have expired.")] = False,
    limit: PageLimit = 100,
    cursor: PageCursor = None,
) -> KeyPage:
    """Page through a tenant's API keys, newest first, without their secrets."""
    wanted = tenant or caller.tenant
    require_operator_for(caller, wanted)
    after = after_moment(cursor)
    found = await gateway.keys.listed(wanted, revoked=revoked, limit=limit + 1, after=after)
    page = first_page(found, limit=limit, key=lambda key: moment_key(key.created_at, key.id))
    return KeyPage(keys=page.items, next_cursor=page.next_cursor)


@router.get("/{key_id}", responses=tags(404))
async def get_key(key_id: KeyPath, gateway: GatewayDependency, caller: Admin, response: Response) -> Key:
    """Show an API key without its secret, also one that was revoked or has expired."""
    found = await _key(gateway, caller, key_id)
    return tagged(response, found, _tag(found))


@router.patch("/{key_id}", responses=tags(404, 412, 413))
async def change_key(
    *,
    key_id: KeyPath,
    changes: KeyChanges,
    gateway: GatewayDependency,
    caller: Admin,
    condition: IfUnchanged,
    response: Response,
) -> Key:
    """Change the name or the limits of an API key; every gateway knows within seconds."""
    found = await _changeable(gateway, caller, key_id)
    async with KEY.changing(gateway, replace(caller, tenant=found.tenant), key_id, condition):
        found = await _key(gateway, caller, key_id)
        limits = changes.limits if "limits" in changes.model_fields_set else found.limits
        changed = await gateway.keys.change(found.tenant, key_id, name=changes.name or found.name, limits=limits)
    log.info("API key changed", key=key_id, tenant=found.tenant, by=caller.name)
    return tagged(response, changed, _tag(changed))


@router.delete("/{key_id}", responses=fails(404, 412))
async def revoke_key(key_id: KeyPath, gateway: GatewayDependency, caller: Admin, condition: IfUnchanged) -> KeyRevoked:
    """Revoke an API key; every gateway refuses it within seconds."""
    found = await _changeable(gateway, caller, key_id)
    async with KEY.changing(gateway, replace(caller, tenant=found.tenant), key_id, condition):
        revoked = await gateway.keys.revoke(found.tenant, key_id)
    log.info("API key revoked", key=key_id, tenant=found.tenant, by=caller.name)
    return KeyRevoked(id=key_id, revoked=revoked)


async def _key(gateway: Gateway, caller: Caller, key_id: str) -> Key:
    """Return a key of the caller's tenant, or of any for an operator. Raises NotFound."""
    found = await gateway.keys.get(key_id)
    if found is None or (found.tenant != caller.tenant and not caller.is_operator):
        raise NotFound("API key", key_id)
    return found


async def _changeable(gateway: Gateway, caller: Caller, key_id: str) -> Key:
    found = await _key(gateway, caller, key_id)
    if "operator" in found.scopes and not caller.is_operator:
        raise Forbidden("an operator's key is changed and revoked by an operator")
    await note_tenant(gateway, found.tenant)
    return found


def _tag(key: Key) -> str:
    # Not when it was last used, which changes by itself.
    return entity_tag(key.model_dump(mode="json", exclude={"last_used_at"}))


KEY = Changeable("API key", _key, _tag)
