"""Secrets and signatures of Standard Webhooks (https://www.standardwebhooks.com). Pure, but for new secrets."""

from __future__ import annotations

import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Iterable

PREFIX = "whsec_"
SECRET_BYTES = 32
VERSION = "v1"


def new_secret() -> str:
    """Return a new secret, as receivers keep it."""
    return PREFIX + b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def signed_headers(delivery_id: str, timestamp_s: int, body: bytes, secrets: Iterable[str]) -> dict[str, str]:
    """Return the headers by which a receiver knows a delivery, and that it is ours: one signature a secret."""
    content = b".".join((delivery_id.encode(), str(timestamp_s).encode(), body))
    signatures = (f"{VERSION},{_signature(secret, content)}" for secret in secrets)
    return {
        "webhook-id": delivery_id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": " ".join(signatures),
    }


def _signature(secret: str, content: bytes) -> str:
    key = b64decode(secret.removeprefix(PREFIX))
    return b64encode(hmac.digest(key, content, "sha256")).decode()
