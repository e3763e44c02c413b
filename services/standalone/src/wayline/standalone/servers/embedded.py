"""The embedded servers of an installation, on the ports they had before."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from wayline.embedded import NatsServer, PostgresServer, free_port, is_free
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import DATABASE, Installation, ServerAccess

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


@asynccontextmanager
async def started_servers(
    settings: Settings, installation: Installation, credentials: Credentials
) -> AsyncIterator[ServerAccess]:
    """Start the embedded servers, but for those of the user's own, for as long as they are needed."""
    from wayline.standalone.setup.migrations import create_database

    async with AsyncExitStack() as stack:
        nats_url, admin_dsn = settings.nats_url, settings.admin_dsn
        if admin_dsn is None:
            postgres = await stack.enter_async_context(postgres_server(installation, settings))
            await create_database(postgres.dsn())
            admin_dsn = database_dsn(postgres)
        if nats_url is None:
            nats_url = (await stack.enter_async_context(nats_server(installation, settings, credentials))).url
        yield ServerAccess(
            nats_url=nats_url,
            admin_dsn=admin_dsn,
            credentials=credentials,
            own_bus=settings.nats_url is None or settings.nats_accounts_file is not None,
            nats_seed=settings.nats_seed,
            pooler_dsn=settings.pooler_dsn,
        )
