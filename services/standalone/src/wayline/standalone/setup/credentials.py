"""The services' credentials on the bus and in the database: generated once, readable by their owner only."""

from __future__ import annotations

import json
import os
import secrets
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nkeys

from wayline.standalone.errors import DataDirInvalid

ADMIN = "admin"
SYSTEM = "system"
"""The identity that may make a server reload its configuration, and nothing else."""
PASSWORD_BYTES = 24
KEY_BYTES = 32


@dataclass(frozen=True)
class Credentials:
    """The nkey seed of every identity on the bus, the password of every role in the database, and keys of services."""

    seeds: Mapping[str, str] = field(repr=False)
    passwords: Mapping[str, str] = field(repr=False)
    service_keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    """By service, the keys `id:base64` with which it encrypts or signs what it stores."""

    def public_keys(self) -> dict[str, str]:
        """Return the public keys of the seeds, which the bus knows."""
        return {name: public_key(seed) for name, seed in self.seeds.items()}


def load_credentials(path: Path, *, identities: list[str], roles: list[str], keyed: Iterable[str] = ()) -> Credentials:
    """Return the credentials in `path`, generating and writing those that are missing."""
    stored = _read(path)
    seeds = {name: stored["seeds"].get(name) or new_seed() for name in identities}
    passwords = {name: stored["passwords"].get(name) or secrets.token_urlsafe(PASSWORD_BYTES) for name in roles}
    service_keys = {name: stored["ciphers"].get(name) or new_service_key() for name in keyed}
    # Credentials that this version does not know belong to another version: keep them.
    whole = {
        "seeds": {**stored["seeds"], **seeds},
        "passwords": {**stored["passwords"], **passwords},
        "ciphers": {**stored["ciphers"], **service_keys},
    }
    if whole != stored:
        write_private(path, json.dumps(whole, indent=1) + "\n")
    return Credentials(seeds=seeds, passwords=passwords, service_keys=service_keys)


def write_private(path: Path, text: str) -> None:
    """Replace a file in one step by one that only its owner may ever read."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def _read(path: Path) -> dict[str, dict[str, str]]:
    try:
        stored = json.loads(path.read_text())
        # Files of older versions have no keys of services.
        return {
            "seeds": dict(stored["seeds"]),
            "passwords": dict(stored["passwords"]),
            "ciphers": dict(stored.get("ciphers", {})),
        }
    except FileNotFoundError:
        return {"seeds": {}, "passwords": {}, "ciphers": {}}
    except (ValueError, KeyError, TypeError):
        raise DataDirInvalid(path=path, cause="this is not the credentials file that Wayline wrote") from None
    except PermissionError:
        raise DataDirInvalid(path=path, cause="it belongs to another user") from None


def new_seed() -> str:
    """Make a fresh nkey seed."""
    return nkeys.encode_seed(secrets.token_bytes(32), nkeys.PREFIX_BYTE_USER).decode()


def new_service_key() -> str:
    """Make a fresh key `id:base64`; its id tells it from the ones that replace it."""
    return f"{secrets.token_hex(4)}:{b64encode(secrets.token_bytes(KEY_BYTES)).decode()}"


def public_key(seed: str) -> str:
    """Return the public key of a seed, which the bus knows."""
    public: Any = nkeys.from_seed(seed.encode()).public_key
    return public.decode()
