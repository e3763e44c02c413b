"""`wayline credentials`: change who may connect, write the accounts, and have the bus read them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wayline.standalone.bus.accounts import read_again, write_accounts
from wayline.standalone.bus.clients import BusClient, add, held, read_clients, remove, write_clients
from wayline.standalone.setup.installation import Installation
from wayline.standalone.settings import Settings


@dataclass(frozen=True)
class Told:
    """How many servers read the accounts that were written."""

    servers: int
    file: Path

    @property
    def words(self) -> str:
        if self.servers:
            return "The bus knows." if self.servers == 1 else f"The {self.servers} servers of the bus know."
        return f"No bus runs here: it reads {self.file} when it starts."


def create(
    name: str, *, tenant: str, scopes: Sequence[str], settings: Settings | None = None
) -> tuple[BusClient, str, Told]:
    """Make a client; returns it with its seed. Raises ClientInvalid, DataDirInvalid or Unavailable."""
    settings, installation = _place(settings)
    with held(installation.clients):
        before = read_clients(installation.clients)
        clients = list(before)
        made, seed = add(clients, name=name, tenant=tenant, scopes=scopes)
        write_clients(installation.clients, clients)
        try:
            return made, seed, _tell(settings, installation)
        except BaseException:
            # Its seed has been shown to nobody.
            write_clients(installation.clients, before)
            write_accounts(settings, installation, installation.load_credentials())
            raise


def kept(settings: Settings | None = None) -> list[BusClient]:
    """List every client. Raises DataDirInvalid."""
    _, installation = _place(settings)
    return read_clients(installation.clients)


def write(settings: Settings | None = None) -> Told:
    """Write the accounts as they are. Raises DataDirInvalid or Unavailable."""
    settings, installation = _place(settings)
    with held(installation.clients):
        return _tell(settings, installation)


def revoke(name: str, *, settings: Settings | None = None) -> tuple[BusClient, Told]:
    """Take a client away. Raises ClientInvalid, DataDirInvalid or Unavailable."""
    settings, installation = _place(settings)
    with held(installation.clients):
        clients = read_clients(installation.clients)
        gone = remove(clients, name)
        write_clients(installation.clients, clients)
        return gone, _tell(settings, installation)


def _place(settings: Settings | None) -> tuple[Settings, Installation]:
    settings = settings or Settings()
    installation = Installation(settings.data_dir.absolute())
    installation.prepare()
    return settings, installation


def _tell(settings: Settings, installation: Installation) -> Told:
    credentials = installation.load_credentials()
    file = write_accounts(settings, installation, credentials)
    return Told(asyncio.run(read_again(settings, installation, credentials)), file)
