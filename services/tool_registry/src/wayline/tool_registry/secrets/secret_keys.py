"""The keys that encrypt the secrets of tenants' servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from wayline.contracts.errors import Reject
from wayline.store.sealing import SealingKeys

VARIABLE = "WAYLINE_TOOL_REGISTRY_KEYS"


@dataclass(frozen=True)
class SecretKeys(SealingKeys):
    """The registry's keys by id."""

    variable: ClassVar[str] = VARIABLE


def require_key(secrets: Mapping[str, object], newest: str | None) -> None:
    """Refuse to store secrets that nothing would encrypt. Raises Reject."""
    if secrets and newest is None:
        raise Reject(
            f"this installation cannot keep secrets: set {VARIABLE} to id:base64 of 32 random bytes where the "
            "tool-registry runs, or leave `headers`, `env` and the query of `url` empty",
            code="no_secret_key",
            status=409,
        )
