"""API keys: what one looks like, and what is kept of it."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from typing import Literal, get_args

from wayline.gateway.rates import NO_RATES, Bucket, CallerRates, Meter

OPEN_TENANT = "default"
"""Whose jobs are run while no key exists."""
Scope = Literal["read", "write", "tools", "approve", "memory:release", "webhooks", "admin", "operator"]
"""`tools`: the tools of MCP servers, called over `/mcp`; `approve`: tool calls that wait for a person;
`memory:release`: facts that wait for one; `webhooks`: the tenant's webhooks; `admin`: these, the tenant's agents,
models, schedules, budgets, dead letters and keys; `operator`: all tenants and their keys."""
SCOPES: tuple[Scope, ...] = get_args(Scope)

_KEY = re.compile(r"wl_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True)
class Caller:
    """Who sends a request: the tenant it acts for, the name of its key, and what it may do."""

    tenant: str
    name: str
    scopes: frozenset[str] = frozenset(SCOPES)
    is_open: bool = False
    """No key was shown, because none exists yet."""
    key_id: str = ""
    """Of the key that was shown; empty: none was."""
    user_id: str | None = None
    """For whom the key acts, and for nobody else; None: for any user of its tenant."""
    rates: CallerRates = NO_RATES
    """How much it may send."""

    def buckets(self, meter: Meter, *, user_id: str | None = None) -> tuple[Bucket, ...]:
        """Return what a request of this caller, or a job that it begins for a user, takes a token of."""
        return self.rates.buckets(meter, key_id=self.key_id, user_id=self.user_id or user_id)

    @property
    def is_operator(self) -> bool:
        return "operator" in self.scopes


RATE_LIMITS = "rate_limits"
"""In the state of a request: the headers that tell its caller of its rates."""
IDENTITY = "identity"
"""In the state of a request: its caller."""


@dataclass(frozen=True)
class StoredKey:
    """What is kept of a key: enough to recognise it, not enough to make it."""

    id: str
    hash: bytes
    caller: Caller
    is_unused: bool = False
    """Nobody has noted its use for a while."""


@dataclass(frozen=True)
class NewKey:
    """A key just made: `secret` is shown once."""

    id: str
    secret: str
    hash: bytes


def mint() -> NewKey:
    """Return a new key: an id to find it by, and 256 random bits."""
    key_id = secrets.token_hex(8)
    secret = f"wl_{key_id}_{secrets.token_urlsafe(32)}"
    return NewKey(key_id, secret, digest(secret))


def digest(secret: str) -> bytes:
    """Return the hash that is stored of a key. A plain one is enough: 256 random bits cannot be guessed."""
    return sha256(secret.encode()).digest()


def key_id(secret: str) -> str | None:
    """Return the id within a key, or None when this is no key of ours."""
    found = _KEY.fullmatch(secret)
    return found.group(1) if found else None


def opens(key: StoredKey, secret: str) -> bool:
    """Return whether the shown key is the stored one, in the same time for every wrong one."""
    return compare_digest(key.hash, digest(secret))
