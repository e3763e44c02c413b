"""Secrets of a tenant, which its servers refer to by name; values are stored and sent to servers, and never shown."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypeAlias

from pydantic import Field, SecretStr, field_validator

from wayline.contracts.base import Frozen, Request
from wayline.contracts.mcp_servers import CarriesSecrets
from wayline.contracts.server_config import SECRET_NAME, Secret

VALUE_MAX_CHARS = 8_000

SecretName: TypeAlias = Annotated[str, Field(pattern=f"^{SECRET_NAME}$")]


class SecretView(Frozen):
    """A secret as it is shown: by its name alone."""

    name: str
    saved_at: datetime
    used_by: tuple[str, ...] = Field(default=(), description="The servers that refer to it.")


class SecretList(Frozen):
    """The secrets of a tenant, by name."""

    secrets: tuple[SecretView, ...]


class PutSecret(CarriesSecrets, subject="mcp.putsecret.{tenant}", replies=SecretView):
    """Store a secret, or another value of it; the servers that refer to it are connected anew."""

    name: SecretName
    value: Secret

    @field_validator("value")
    @classmethod
    def _can_be_kept(cls, value: SecretStr) -> SecretStr:
        return require_value(value)


class ListSecrets(Request, subject="mcp.secrets.{tenant}", replies=SecretList):
    """Ask for the names of a tenant's secrets."""


class SecretDeleted(Frozen):
    """Whether there was such a secret."""

    deleted: bool


class DeleteSecret(Request, subject="mcp.deletesecret.{tenant}", replies=SecretDeleted):
    """Delete a secret that no server refers to."""

    name: str = Field(max_length=64)


class SecretRotation(Frozen):
    """How far all secrets of the installation, of every tenant, are encrypted with the newest key."""

    newest: str | None = Field(description="The id of the key that encrypts; None: there is no key.")
    encrypted: int = Field(description="Rows that this request has encrypted with it.")
    left: dict[str, int] = Field(description="Rows that need another key to be read, by the id of that key.")
    unknown: tuple[str, ...] = Field(
        default=(), description="Those of these keys that the registry which answered does not have."
    )


class RotateSecrets(Request, subject="mcp.rotate.{tenant}", replies=SecretRotation):
    """Encrypt with the newest key some of what an older one encrypted, of every tenant: an operator's request."""


def require_value(value: SecretStr) -> SecretStr:
    """Return a value that can be kept. Raises ValueError, which does not hold it."""
    text = value.get_secret_value()
    if not 0 < len(text) <= VALUE_MAX_CHARS or "\0" in text:
        raise ValueError(f"a secret has 1 to {VALUE_MAX_CHARS} characters, and no NUL among them")
    return value
