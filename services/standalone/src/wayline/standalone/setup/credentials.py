"""Who each service is on the bus and in the database: generated once, readable by the owner alone."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nkeys

from wayline.standalone.errors import DataDirInvalid

ADMIN = "admin"
SYSTEM = "system"
"""Who may have a server read its configuration again, and nothing else of ours."""
PASSWORD_BYTES = 24


@dataclass(frozen=True)
class Credentials:
    """The nkey seed of every identity on the bus, and the password of every role in the database."""

    seeds: Mapping[str, str] = field(repr=False)
    passwords: Mapping[str, str] = field(repr=False)

    def public_keys(self) -> dict[str, str]:
        """What the bus is told of the seeds."""
        return {name: public_key(seed) for name, seed in self.seeds.items()}


def load_credentials(path: Path, *, identities: list[str], roles: list[str]) -> Credentials:
    """The credentials kept in `path`; those that are missing, all of them the first time, are generated and kept."""
    kept = _read(path)
    seeds = {name: kept["seeds"].get(name) or new_seed() for name in identities}
    passwords = {name: kept["passwords"].get(name) or secrets.token_urlsafe(PASSWORD_BYTES) for name in roles}
    # One that this version does not know is another version's: keep it.
    whole = {"seeds": {**kept["seeds"], **seeds}, "passwords": {**kept["passwords"], **passwords}}
    if whole != kept:
        write_private(path, json.dumps(whole, indent=1) + "\n")
    return Credentials(seeds=seeds, passwords=passwords)


def write_private(path: Path, text: str) -> None:
    """Replace a file by one that only its owner may read, never half written, never open to others for a moment."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def _read(path: Path) -> dict[str, dict[str, str]]:
    try:
        kept = json.loads(path.read_text())
        return {"seeds": dict(kept["seeds"]), "passwords": dict(kept["passwords"])}
    except FileNotFoundError:
        return {"seeds": {}, "passwords": {}}
    except (ValueError, KeyError, TypeError):
        raise DataDirInvalid(path=path, cause="this is not the credentials file that Wayline wrote") from None
    except PermissionError:
        raise DataDirInvalid(path=path, cause="it belongs to another user") from None


def new_seed() -> str:
    """Make a fresh nkey seed."""
    return nkeys.encode_seed(secrets.token_bytes(32), nkeys.PREFIX_BYTE_USER).decode()


def public_key(seed: str) -> str:
    """Return the public key of a seed, which the bus is told."""
    public: Any = nkeys.from_seed(seed.encode()).public_key
    return public.decode()
