"""Encrypt the secrets of tenants: AES-256-GCM, bound to the tenant and to what they belong to."""

from __future__ import annotations

import os
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import orjson

from wayline.contracts.errors import Conflict

KEY_BYTES = 32
NONCE_BYTES = 12
ID_CHARS_MAX = 32


class CannotOpen(Conflict):
    """Secrets that no key of ours opens; the text names no secret."""


@dataclass(frozen=True)
class Sealed:
    """Secrets as they are stored: the id of their key, and nonce and ciphertext."""

    key_id: str
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class SealingKeys:
    """Keys by id: the first one encrypts, all decrypt. A service derives its own."""

    variable: ClassVar[str] = ""
    """The environment variable that holds them, for errors."""

    keys: Mapping[str, bytes] = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `id:base64,id:base64`. Raises ValueError, naming no key."""
        keys: dict[str, bytes] = {}
        for number, part in enumerate(filter(None, map(str.strip, text.split(","))), start=1):
            key_id, colon, encoded = part.partition(":")
            try:
                key = b64decode(encoded, validate=True)
            except (NotBase64, ValueError):
                key = b""
            if not colon or not 0 < len(key_id) <= ID_CHARS_MAX or len(key) != KEY_BYTES:
                raise ValueError(f"key {number} is not of the form id:base64 with {KEY_BYTES} bytes in base64")
            if key_id in keys:
                raise ValueError(f"two keys have the id {key_id!r}")
            keys[key_id] = key
        return cls(keys)

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the ids of all keys, the one that encrypts first."""
        return tuple(self.keys)

    @property
    def newest(self) -> str | None:
        """Return the id of the key that encrypts; None: there is no key."""
        return next(iter(self.keys), None)

    @property
    def older(self) -> list[str]:
        """Return the ids of the keys that only decrypt."""
        return [key_id for key_id in self.keys if key_id != self.newest]

    def seal(self, secrets: Mapping[str, object], *, tenant: str, owner: str) -> Sealed:
        """Encrypt secrets with the newest key; there must be one."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        key_id = self.newest
        assert key_id is not None, "secrets are refused where there is no key"
        nonce = os.urandom(NONCE_BYTES)
        data = AESGCM(self.keys[key_id]).encrypt(nonce, orjson.dumps(secrets), _bound_to(key_id, tenant, owner))
        return Sealed(key_id, nonce + data)

    def open(self, sealed: Sealed, *, tenant: str, owner: str) -> dict[str, Any]:
        """Decrypt what `seal` made for the same owner of the same tenant. Raises CannotOpen."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        key = self.keys.get(sealed.key_id)
        if key is None:
            raise CannotOpen(
                f"its secrets were encrypted with the key {sealed.key_id!r}, which {self.variable} does not hold"
            )
        nonce, data = sealed.data[:NONCE_BYTES], sealed.data[NONCE_BYTES:]
        try:
            return orjson.loads(AESGCM(key).decrypt(nonce, data, _bound_to(sealed.key_id, tenant, owner)))
        except (InvalidTag, ValueError):
            raise CannotOpen(
                f"its secrets are damaged, or the key {sealed.key_id!r} is another one now: save them again"
            ) from None


def _bound_to(key_id: str, tenant: str, owner: str) -> bytes:
    """Return what a ciphertext is bound to: in another row it cannot be opened."""
    return orjson.dumps([key_id, tenant, owner])
