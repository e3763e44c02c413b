"""The embedded servers of an installation, on the ports they had before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wayline.embedded import NatsServer, PostgresServer, free_port, is_free
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import DATABASE, Installation

if TYPE_CHECKING:
    from wayline.standalone.setup.credentials import Credentials

Server = NatsServer | PostgresServer


def postgres_server(installation: Installation, settings: Settings) -> PostgresServer:
    """Return the embedded Postgres, on its earlier port unless another program has taken that."""
    if settings.postgres_port is not None:
        return PostgresServer(installation.postgres, port=settings.postgres_port)
    remembered = installation.postgres / "port"
    port = int(remembered.read_text()) if remembered.exists() else None
    if port is None or not is_free(port):
        port = free_port()
        installation.postgres.mkdir(exist_ok=True)
        remembered.write_text(f"{port}\n")
    return PostgresServer(installation.postgres, port=port)


def nats_server(installation: Installation, settings: Settings, credentials: Credentials) -> NatsServer:
    """Return the embedded bus, which knows every identity of the installation."""
    from wayline.standalone.bus.accounts_file import write_accounts
    from wayline.standalone.bus.stored_clients import locked
    from wayline.standalone.servers.nats_config import render

    with locked(installation.clients):
        accounts = write_accounts(settings, installation, credentials)
    config = render(f"include ./{accounts.name}", monitor_port=settings.nats_monitor_port)
    return NatsServer(installation.nats, config=config, port=settings.nats_port)


def database_dsn(server: PostgresServer) -> str:
    """Return the address of our database for its superuser."""
    return server.dsn(database=DATABASE)
