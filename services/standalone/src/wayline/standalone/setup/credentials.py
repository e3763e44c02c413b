"""The services' credentials on the bus and in the database: generated once, readable by their owner only."""

from __future__ import annotations

import json
import os
import secrets
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import nkeys

from wayline.standalone.errors import DataDirInvalid

ADMIN = "admin"
SYSTEM = "system"
"""The identity that may make a server reload its configuration, and nothing else."""
NKEYS = "nkeys"
SECOND_ROLE = "_second"
"""Postgres keeps one password a role: while a password changes, its service has two roles of the same rights."""
PASSWORD_BYTES = 24
KEY_BYTES = 32


class Phase(StrEnum):
    """How far a rotation is: what is written is always accepted, so that it may stop between any two of them."""

    OFFERED = "offered"
    """The new one is made, and accepted or read beside the one in use."""
    TAKEN = "taken"
    """The new one is in use; the former is still accepted, for processes that were not restarted."""
    CLOSING = "closing"
    """The former one is being refused."""


@dataclass(frozen=True)
class Credentials:
    """The nkey seed of every identity on the bus, the password of every role in the database, and keys of services."""

    seeds: Mapping[str, str] = field(repr=False)
    passwords: Mapping[str, str] = field(repr=False)
    service_keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    """By service, the keys `id:base64` with which it encrypts or signs what it stores, parted by commas."""
    other_seeds: Mapping[str, str] = field(default_factory=dict, repr=False)
    """While they are rotated: the next seeds (`offered`), then the former ones."""
    other_passwords: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The same of passwords, of the other role with which a service may log in."""
    second_roles: bool = False
    """Whether services log in to the database by the second of their two roles."""
    rotations: Mapping[str, Phase] = field(default_factory=dict)
    """The rotations that are under way, by what they rotate."""

    def public_keys(self) -> dict[str, str]:
        """Return the public keys of the seeds, which the bus knows."""
        return {name: public_key(seed) for name, seed in self.seeds.items()}

    def keys_beside(self) -> dict[str, str]:
        """Return the public key that the bus accepts beside another one, by that one."""
        if self.rotations.get(NKEYS) not in (Phase.OFFERED, Phase.TAKEN):
            return {}
        others = self.other_seeds.items()
        return {public_key(self.seeds[name]): public_key(seed) for name, seed in others if name in self.seeds}

    def role_of(self, role: str, *, second: bool | None = None) -> str:
        """Return the role by which a service logs in, by the one that holds its rights."""
        return f"{role}{SECOND_ROLE}" if (self.second_roles if second is None else second) else role


def load_credentials(path: Path, *, identities: list[str], roles: list[str], keyed: Iterable[str] = ()) -> Credentials:
    """Return the credentials in `path`, generating and writing those that are missing."""
    stored = _read(path)
    found = Credentials(
        seeds={name: stored["seeds"].get(name) or new_seed() for name in identities},
        passwords={name: stored["passwords"].get(name) or new_password() for name in roles},
        service_keys={name: stored["ciphers"].get(name) or new_service_key() for name in keyed},
        other_seeds=stored["other_seeds"],
        other_passwords=stored["other_passwords"],
        second_roles=bool(stored["second_roles"]),
        rotations={what: Phase(phase) for what, phase in stored["rotations"].items()},
    )
    # Compared with what was read above: what another command has stored since is not taken back.
    _write(path, found, stored)
    return found


def save_credentials(path: Path, credentials: Credentials) -> None:
    """Write credentials where they differ from what is in `path`."""
    _write(path, credentials, _read(path))


def _write(path: Path, credentials: Credentials, stored: Mapping[str, Any]) -> None:
    # Credentials that this version does not know belong to another version: keep them.
    whole = {
        "seeds": {**stored["seeds"], **credentials.seeds},
        "passwords": {**stored["passwords"], **credentials.passwords},
        "ciphers": {**stored["ciphers"], **credentials.service_keys},
        "other_seeds": dict(credentials.other_seeds),
        "other_passwords": dict(credentials.other_passwords),
        "second_roles": credentials.second_roles,
        "rotations": dict(credentials.rotations),
    }
    if whole != stored:
        write_private(path, json.dumps(whole, indent=1) + "\n")


def write_private(path: Path, text: str) -> None:
    """Replace a file in one step by one that only its owner may ever read."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def _read(path: Path) -> dict[str, Any]:
    # Files of older versions have no keys of services and no rotation.
    empty = {"seeds": {}, "passwords": {}, "ciphers": {}, "other_seeds": {}, "other_passwords": {}}
    none: dict[str, Any] = {**empty, "second_roles": False, "rotations": {}}
    try:
        stored = json.loads(path.read_text())
        known = {name: type(value)(stored.get(name, value)) for name, value in none.items()}
        return {**known, "seeds": dict(stored["seeds"]), "passwords": dict(stored["passwords"])}
    except FileNotFoundError:
        return none
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataDirInvalid(path=path, cause="this is not the credentials file that Wayline wrote") from None
    except PermissionError:
        raise DataDirInvalid(path=path, cause="it belongs to another user") from None


def new_seed() -> str:
    """Make a fresh nkey seed."""
    return nkeys.encode_seed(secrets.token_bytes(32), nkeys.PREFIX_BYTE_USER).decode()


def new_password() -> str:
    """Make a fresh password of a role."""
    return secrets.token_urlsafe(PASSWORD_BYTES)


def new_service_key() -> str:
    """Make a fresh key `id:base64`; its id tells it from the ones that replace it."""
    return f"{secrets.token_hex(4)}:{b64encode(secrets.token_bytes(KEY_BYTES)).decode()}"


def public_key(seed: str) -> str:
    """Return the public key of a seed, which the bus knows."""
    public: Any = nkeys.from_seed(seed.encode()).public_key
    return public.decode()
