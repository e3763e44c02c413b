"""`wayline credentials`: change the clients of the bus, write its accounts, and make it reload them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wayline.standalone.bus.accounts_file import reload, write_accounts
from wayline.standalone.bus.stored_clients import ClientOfBus, add, locked, read_clients, remove, write_clients
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import Installation


@dataclass(frozen=True)
class Reload:
    """The accounts file that was written, and how many servers have read it."""

    servers: int
    file: Path

    @property
    def message(self) -> str:
        """Return the result in a sentence."""
        if self.servers:
            return "The bus has it." if self.servers == 1 else f"The {self.servers} servers of the bus have it."
        return f"No bus runs here; it will read {self.file} when it starts."


def create(
    name: str, *, tenant: str, scopes: Sequence[str], settings: Settings | None = None
) -> tuple[ClientOfBus, str, Reload]:
    """Create a client and return it with its seed. Raises ClientInvalid, DataDirInvalid or Unavailable."""
    settings, installation = _prepared(settings)
    with locked(installation.clients):
        before = read_clients(installation.clients)
        clients = list(before)
        made, seed = add(clients, name=name, tenant=tenant, scopes=scopes)
        write_clients(installation.clients, clients)
        try:
            return made, seed, _write_and_reload(settings, installation)
        except BaseException:
            # Its seed has not been shown yet.
            write_clients(installation.clients, before)
            write_accounts(settings, installation, installation.load_credentials())
            raise


def clients(settings: Settings | None = None) -> list[ClientOfBus]:
    """List every client. Raises DataDirInvalid."""
    _, installation = _prepared(settings)
    return read_clients(installation.clients)


def write(settings: Settings | None = None) -> Reload:
    """Write the accounts again without a change. Raises DataDirInvalid or Unavailable."""
    settings, installation = _prepared(settings)
    with locked(installation.clients):
        return _write_and_reload(settings, installation)


def revoke(name: str, *, settings: Settings | None = None) -> tuple[ClientOfBus, Reload]:
    """Revoke a client. Raises ClientInvalid, DataDirInvalid or Unavailable."""
    settings, installation = _prepared(settings)
    with locked(installation.clients):
        clients = read_clients(installation.clients)
        gone = remove(clients, name)
        write_clients(installation.clients, clients)
        return gone, _write_and_reload(settings, installation)


def _prepared(settings: Settings | None) -> tuple[Settings, Installation]:
    settings = settings or Settings()
    installation = Installation(settings.data_dir.absolute())
    installation.prepare()
    return settings, installation


def _write_and_reload(settings: Settings, installation: Installation) -> Reload:
    credentials = installation.load_credentials()
    file = write_accounts(settings, installation, credentials)
    return Reload(asyncio.run(reload(settings, installation, credentials)), file)
