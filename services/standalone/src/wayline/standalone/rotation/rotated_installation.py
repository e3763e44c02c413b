"""What every rotation works on: the credentials of an installation, its bus and its database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import asyncpg

from wayline.standalone.bus.accounts_file import NotReached, as_system, reload, write_accounts
from wayline.standalone.bus.connections import ServiceConnection, service_connections
from wayline.standalone.errors import CannotRotate
from wayline.standalone.settings import Settings
from wayline.standalone.setup.credentials import Credentials, Phase, save_credentials
from wayline.standalone.setup.installation import Installation, ServerAccess, write_environments
from wayline.standalone.setup.migrate import find_servers
from wayline.store.connecting import connect_admin

ROWS_WAIT_S = 150.0
"""How long a command waits for rows to become fewer: a notifier looks for them every minute."""


@dataclass(frozen=True)
class RotatedInstallation:
    """An installation. What is stored is read anew each time: a rotation goes on where an earlier one was stopped."""

    settings: Settings
    installation: Installation
    restarted: bool = False
    """Whether the operator says that every process was restarted, so that nobody has to be asked."""
    rows_wait_s: float = ROWS_WAIT_S

    @property
    def access(self) -> ServerAccess:
        """Return the addresses of the servers with the credentials that are in use. Raises NoServers."""
        return find_servers(self.settings, self.installation)

    @property
    def credentials(self) -> Credentials:
        """Return what is stored."""
        return self.installation.load_credentials()

    def phase(self, what: str) -> Phase | None:
        """Return how far a rotation is; None: none is under way."""
        return self.credentials.rotations.get(what)

    def save(self, what: str, phase: Phase | None, **changes: Any) -> None:
        """Store a phase together with what it changes, in one step."""
        stored = self.credentials
        others = {name: at for name, at in stored.rotations.items() if name != what}
        rotations = others if phase is None else {**others, what: phase}
        save_credentials(self.installation.keys, replace(stored, rotations=rotations, **changes))

    def write_environments(self) -> None:
        """Write the variables of all processes as they are now."""
        write_environments(self.installation, self.access)

    async def tell_bus(self) -> None:
        """Write the accounts of the bus as they are now, and have its servers read them. Raises Unavailable."""
        credentials = self.credentials
        write_accounts(self.settings, self.installation, credentials)
        await reload(self.settings, self.installation, credentials)

    async def connections(self) -> list[ServiceConnection] | None:
        """Return the connections of services to the bus; None: nobody can say who is connected. Raises Unavailable."""
        if not self.access.own_bus:
            return None
        try:
            async with as_system(self.settings, self.installation, self.credentials) as nc:
                return await service_connections(nc)
        except NotReached as error:
            raise CannotRotate(f"the bus does not say who is connected: {error}") from None

    @asynccontextmanager
    async def database(self) -> AsyncIterator[asyncpg.Connection]:
        """Connect to the database as its administrator."""
        conn = await connect_admin(self.access.admin_dsn)
        try:
            yield conn
        finally:
            await conn.close()


def named(who: Mapping[str, int]) -> str:
    """Return services with how many of their processes."""
    return ", ".join(f"{name} ({count})" for name, count in sorted(who.items()))
