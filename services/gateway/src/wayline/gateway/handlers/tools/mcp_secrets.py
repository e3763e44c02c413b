"""Secrets of a tenant that its MCP servers refer to: stored and replaced, never shown."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Path
from pydantic import Field, SecretStr, field_validator

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
from wayline.gateway.handlers.shared.deleting import was_there
from wayline.gateway.handlers.shared.dependencies import Admin, GatewayDependency, Operator, Reader
from wayline.gateway.openapi import fails
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


@router.get("", responses=fails())
async def list_secrets(gateway: GatewayDependency, caller: Reader) -> SecretList:
    """Return the names of the tenant's secrets and the servers that refer to each, without values."""
    return await gateway.bus.ask(ListSecrets(tenant=caller.tenant), SecretList)


@router.put("/{name}", responses=fails(409))
async def put_secret(name: SecretPath, body: SecretBody, gateway: GatewayDependency, caller: Admin) -> SecretView:
    """Store a secret that servers name as `${secret:NAME}`; those that do are connected anew with the value."""
    return await gateway.bus.ask(PutSecret(tenant=caller.tenant, name=name, value=body.value), SecretView)


@router.delete("/{name}", responses=fails(404, 409))
async def delete_secret(name: SecretPath, gateway: GatewayDependency, caller: Admin) -> SecretDeleted:
    """Delete a secret; 409 while a server refers to it."""
    return was_there(
        await gateway.bus.ask(DeleteSecret(tenant=caller.tenant, name=name), SecretDeleted), "secret", name
    )
