"""Clients of the bus with their tenants and scopes, stored beside the credentials of the services."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from wayline.chassis.access.clients import Client, Scope
from wayline.contracts import ids
from wayline.standalone.errors import ClientInvalid, DataDirInvalid
from wayline.standalone.setup.credentials import new_seed, public_key, write_private

CLIENTS_MAX = 10_000
"""The most clients of one installation: the server reads all of them at each change."""


@dataclass(frozen=True)
class ClientOfBus:
    """The public half of a client's credential."""

    name: str
    tenant: str
    scopes: tuple[Scope, ...]
    public_key: str
    created_at: datetime

    @property
    def client(self) -> Client:
        return Client(self.tenant, frozenset(self.scopes), self.public_key)

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "tenant": self.tenant,
            "scopes": list(self.scopes),
            "public_key": self.public_key,
            "created_at": self.created_at.isoformat(),
        }


def read_clients(path: Path) -> list[ClientOfBus]:
    """Read the clients stored in a file, by name; none where there is no file. Raises DataDirInvalid."""
    try:
        stored = json.loads(path.read_text())["clients"]
        return [
            ClientOfBus(
                name=one["name"],
                tenant=one["tenant"],
                # A scope that this version does not know allows nothing.
                scopes=tuple(Scope(scope) for scope in one["scopes"] if scope in list(Scope)),
                public_key=one["public_key"],
                created_at=datetime.fromisoformat(one["created_at"]),
            )
            for one in stored
        ]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError):
        raise DataDirInvalid(path=path, cause="this is not the file of clients that Wayline wrote") from None
    except PermissionError:
        raise DataDirInvalid(path=path, cause="it belongs to another user") from None


def write_clients(path: Path, clients: Sequence[ClientOfBus]) -> None:
    """Replace the stored clients by these."""
    stored = sorted(clients, key=lambda one: one.name)
    write_private(path, json.dumps({"clients": [one.as_json() for one in stored]}, indent=1) + "\n")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock for changing the clients and writing the accounts that follow from them."""
    with open(path.with_name(f"{path.name}.lock"), "w") as lock:
        os.fchmod(lock.fileno(), 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def add(clients: list[ClientOfBus], *, name: str, tenant: str, scopes: Sequence[str]) -> tuple[ClientOfBus, str]:
    """Add a client and return it with its seed, which is stored nowhere. Raises ClientInvalid."""
    if re.fullmatch(ids.NAME_PATTERN, name) is None:
        raise ClientInvalid(f"{name!r} is not a name: use lower-case letters, digits, - and _, at most 64")
    if not ids.is_tenant(tenant):
        raise ClientInvalid(f"{tenant!r} is not a tenant: use lower-case letters, digits and -, at most 40")
    unknown = [scope for scope in scopes if scope not in list(Scope)]
    if unknown or not scopes:
        raise ClientInvalid(f"no scope {', '.join(unknown) or 'is given'}; there are: {', '.join(Scope)}")
    if any(one.name == name for one in clients):
        raise ClientInvalid(f"there is a credential {name!r} already; revoke it, or take another name")
    if len(clients) >= CLIENTS_MAX:
        raise ClientInvalid(f"there are {CLIENTS_MAX} credentials, the most there may be; revoke some")
    seed = new_seed()
    chosen = tuple(scope for scope in Scope if scope in scopes)
    client = ClientOfBus(name, tenant, chosen, public_key(seed), datetime.now(UTC).replace(microsecond=0))
    clients.append(client)
    return client, seed


def remove(clients: list[ClientOfBus], name: str) -> ClientOfBus:
    """Remove a client. Raises ClientInvalid when there is none of this name."""
    found = next((one for one in clients if one.name == name), None)
    if found is None:
        raise ClientInvalid(f"there is no credential {name!r}; `wayline credentials list` shows those there are")
    clients.remove(found)
    return found
