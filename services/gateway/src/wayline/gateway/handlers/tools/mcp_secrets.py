"""Secrets of a tenant that its MCP servers refer to: stored and replaced, never shown."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Path, Response
from pydantic import Field, SecretStr, field_validator

from wayline.contracts.errors import NotFound
from wayline.contracts.server_config import SECRET_NAME
from wayline.contracts.tenant_secrets import (
    DeleteSecret,
    ListSecrets,
    PutSecret,
    RotateSecrets,
    SecretDeleted,
    SecretList,
    SecretRotation,
    SecretView,
    require_value,
)
from wayline.gateway.conditions import IfUnchanged, entity_tag
from wayline.gateway.handlers.shared.changing import Changeable, tagged
from wayline.gateway.handlers.shared.deleting import was_there
from wayline.gateway.handlers.shared.dependencies import Admin, Gateway, GatewayDependency, Operator, Reader
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails, tags
from wayline.gateway.paging import PageCursor, Paged, PageLimit, page_of
from wayline.gateway.shapes.body import Body
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/mcp/secrets", tags=["mcp servers"], route_class=StrictRoute)

ROTATE_WITHIN_S = 60.0

SecretPath: TypeAlias = Annotated[str, Path(pattern=f"^{SECRET_NAME}$", examples=["BANK_TOKEN"])]


class SecretBody(Body):
    """The value of a secret."""

    value: SecretStr = Field(
        description="Sent to the servers that refer to it, and shown to nobody.", examples=["s3cr3t"]
    )

    @field_validator("value")
    @classmethod
    def _can_be_kept(cls, value: SecretStr) -> SecretStr:
        return require_value(value)


@router.post("/rotate", responses=fails())
async def rotate_secrets(gateway: GatewayDependency, caller: Operator) -> SecretRotation:
    """Encrypt with the newest key some of what older ones encrypted, of every tenant; again until nothing is `left`."""
    return await gateway.bus.ask(RotateSecrets(tenant=caller.tenant), SecretRotation, timeout_s=ROTATE_WITHIN_S)


class SecretPage(SecretList, Paged):
    """A page of the secrets of a tenant, by name."""


@router.get("", responses=fails(400))
async def list_secrets(
    gateway: GatewayDependency, caller: Reader, limit: PageLimit = 100, cursor: PageCursor = None
) -> SecretPage:
    """Page through the names of the tenant's secrets and the servers that refer to each, without values."""
    found = await gateway.bus.ask(ListSecrets(tenant=caller.tenant), SecretList)
    page = page_of(found.secrets, limit=limit, cursor=cursor, key=lambda secret: secret.name)
    return SecretPage(secrets=page.items, next_cursor=page.next_cursor)


@router.get("/{name}", responses=tags(404))
async def get_secret(name: SecretPath, gateway: GatewayDependency, caller: Reader, response: Response) -> SecretView:
    """Return when a secret was saved and the servers that refer to it, without its value."""
    found = await _secret(gateway, caller, name)
    return tagged(response, found, _tag(found))


@router.put("/{name}", responses=tags(409, 412))
async def put_secret(
    *,
    name: SecretPath,
    body: SecretBody,
    gateway: GatewayDependency,
    caller: Admin,
    condition: IfUnchanged,
    response: Response,
) -> SecretView:
    """Store a secret that servers name as `${secret:NAME}`; those that do are connected anew with the value."""
    async with SECRET.changing(gateway, caller, name, condition):
        saved = await gateway.bus.ask(PutSecret(tenant=caller.tenant, name=name, value=body.value), SecretView)
    return tagged(response, saved, _tag(saved))


@router.delete("/{name}", responses=fails(404, 409, 412))
async def delete_secret(
    name: SecretPath, gateway: GatewayDependency, caller: Admin, condition: IfUnchanged
) -> SecretDeleted:
    """Delete a secret; 409 while a server refers to it."""
    async with SECRET.changing(gateway, caller, name, condition):
        deleted = await gateway.bus.ask(DeleteSecret(tenant=caller.tenant, name=name), SecretDeleted)
    return was_there(deleted, "secret", name)


async def _secret(gateway: Gateway, caller: Caller, name: str) -> SecretView:
    found = await gateway.bus.ask(ListSecrets(tenant=caller.tenant), SecretList)
    for secret in found.secrets:
        if secret.name == name:
            return secret
    raise NotFound("secret", name)


def _tag(secret: SecretView) -> str:
    return entity_tag(secret.name, secret.saved_at.isoformat())


SECRET = Changeable("secret", _secret, _tag)
