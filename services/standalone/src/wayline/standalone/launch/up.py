"""`wayline up`: the servers, the migrations and every service, from one command until Ctrl-C."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import structlog

from wayline.chassis.process_secrets import keep_secrets
from wayline.embedded import require_free
from wayline.standalone.launch import log_config
from wayline.standalone.launch.step_printer import StepPrinter
from wayline.standalone.launch.stopping import Stopped, Stopping
from wayline.standalone.servers.embedded import Server, database_dsn, nats_server, postgres_server
from wayline.standalone.servers.watch import keep_running
from wayline.standalone.services import MEMBERS, Member, ServiceGroup
from wayline.standalone.settings import Settings
from wayline.standalone.setup.credentials import Credentials, write_private
from wayline.standalone.setup.installation import Installation, ServerAccess, write_environments

if TYPE_CHECKING:
    pass

log = structlog.get_logger()


async def up(settings: Settings, *, servers_only: bool = False, sample: bool = False) -> None:
    """Start everything, run until a signal, then stop everything in order."""
    keep_secrets()
    printer, stopping, installation = StepPrinter(), Stopping(), Installation(settings.data_dir.absolute())
    stopping.listen()
    installation.prepare()
    with installation.locked():
        installation.require_restored()
        log_config.configure(settings, file=installation.logs / "wayline.log")
        try:
            async with AsyncExitStack() as stack:
                await _Up(settings, installation, printer, stopping, stack).run(
                    servers_only=servers_only, sample=sample
                )
        except Stopped:
            pass
        printer.say("Stopped; everything is kept in " + str(installation.root))


class _Up:
    """One run of `wayline up`: everything started goes on the stack, and is stopped in the opposite order."""

    def __init__(
        self,
        settings: Settings,
        installation: Installation,
        printer: StepPrinter,
        stopping: Stopping,
        stack: AsyncExitStack,
    ) -> None:
        self._settings = settings
        self._installation = installation
        self._printer = printer
        self._stopping = stopping
        self._stack = stack
        self._servers: list[Server] = []
        self._group: ServiceGroup | None = None

    async def run(self, *, servers_only: bool, sample: bool) -> None:
        if not servers_only:
            require_free(self._settings.http_port, server="the gateway", variable="WAYLINE_HTTP_PORT")
            if self._settings.console:
                require_free(self._settings.console_port, server="the console", variable="WAYLINE_CONSOLE_PORT")
        self._printer.say(f"[bold]Wayline[/bold] in {self._installation.root}")
        access = await self._stopping.or_stop(self._start_servers(load=not servers_only))
        await self._stopping.or_stop(self._migrate(access))
        write_environments(self._installation, access)
        _write_pgpass(self._installation, access)
        await self._stopping.or_stop(_keep_machine_key(self._installation, access))
        if not servers_only:
            await self._start_services(access)
            await self._start_console()
        self._installation.write_running(
            gateway=None if servers_only else self.gateway_url, nats=access.nats_address, servers_only=servers_only
        )
        self._printer.say(f"Ready after {self._printer.elapsed_s:.1f} s.\n")
        if sample and not servers_only:
            await self._stopping.or_stop(self._show_sample())
        self._print_addresses(access, servers_only=servers_only)
        await self._stopping.or_stop(self._watch(access))

    @property
    def gateway_url(self) -> str:
        return f"http://{self._settings.http_host}:{self._settings.http_port}"

    @property
    def console_url(self) -> str | None:
        """Return the address of the console; None: it is not started."""
        settings = self._settings
        return f"http://{settings.http_host}:{settings.console_port}" if settings.console else None

    async def _start_servers(self, *, load: bool) -> ServerAccess:
        """Start the embedded servers, and load the services' code meanwhile, which takes longer."""
        settings, printer = self._settings, self._printer
        loading = asyncio.create_task(asyncio.to_thread(_load)) if load else None
        with printer.step("Starting the servers …") as step:
            credentials = self._installation.load_credentials()
            async with asyncio.TaskGroup() as starting:
                database = starting.create_task(self._start_postgres())
                bus = starting.create_task(self._start_nats(credentials))
            step.done = f"{database.result()[1]}, {bus.result()[1]}"
        if loading is not None:
            with printer.step("Loading the services …") as step:
                await loading
                step.done = "services loaded"
            for unknown in (sentence for member in MEMBERS for sentence in member.unknown_settings()):
                printer.say(f"  [yellow]{unknown}[/yellow]")
        return ServerAccess(
            nats_url=bus.result()[0],
            admin_dsn=database.result()[0],
            credentials=credentials,
            own_bus=settings.nats_url is None or settings.nats_accounts_file is not None,
            nats_seed=settings.nats_seed,
            pooler_dsn=settings.pooler_dsn,
        )

    async def _start_postgres(self) -> tuple[str, str]:
        if self._settings.admin_dsn:
            return self._settings.admin_dsn, "your Postgres"
        server = postgres_server(self._installation, self._settings)
        await self._keep(server)
        from wayline.standalone.setup.migrations import create_database

        await create_database(server.dsn())
        return database_dsn(server), f"Postgres at port {server.port}"

    async def _start_nats(self, credentials: Credentials) -> tuple[str, str]:
        if self._settings.nats_url:
            return self._settings.nats_url, "your NATS"
        server = nats_server(self._installation, self._settings, credentials)
        await self._keep(server)
        return server.url, f"NATS at port {server.port}"

    async def _keep(self, server: Server) -> None:
        self._stack.push_async_callback(server.stop)
        await server.start()
        self._servers.append(server)

    async def _migrate(self, access: ServerAccess) -> None:
        from wayline.standalone.setup.migrations import migrate_all

        with self._printer.step("Migrating …") as step:
            changes = [change async for change in _logged(migrate_all(access, self._settings.limits))]
            step.done = (
                f"database and streams: {len(changes)} changes" if changes else "database and streams up to date"
            )

    async def _start_services(self, access: ServerAccess) -> None:
        from wayline.chassis import BusSettings

        def settings_of(member: Member) -> BusSettings:
            return BusSettings(
                nats_url=access.nats_url,
                nats_seed=access.seed_of(member.identity),
                nats_accounts=access.own_bus,
                postgres_dsn=access.dsn_of(member.role, member.identity) if member.schema else None,
                health_port=None,
            )

        def defaults_of(member: Member) -> dict[str, object]:
            links = {"console_url": self.console_url} if member.name == "gateway" and self.console_url else {}
            return {**keys_of(member, access), **links}

        group = ServiceGroup(MEMBERS, settings_of, defaults_of)
        self._group = group
        self._stack.push_async_callback(self._stopping.drain, group)
        with self._printer.step("Starting the services …") as step:
            await self._stopping.or_stop(group.start())
            step.done = ", ".join(member.name for member in MEMBERS)

    async def _start_console(self) -> None:
        if self.console_url is None:
            return
        from wayline.standalone.servers.console import Console

        settings = self._settings
        where = {"host": settings.http_host, "port": settings.console_port, "gateway_url": self.gateway_url}
        await Console(self._installation, **where).start(self._stack)

    def _print_addresses(self, access: ServerAccess, *, servers_only: bool) -> None:
        from wayline.standalone.launch.ready_text import addresses, next_job

        self._printer.say(
            addresses(
                self._installation,
                access,
                gateway=None if servers_only else self.gateway_url,
                console=None if servers_only else self.console_url,
            )
        )
        if not servers_only:
            self._printer.say(next_job(self.gateway_url, access.nats_address, self._installation.root))
        self._printer.say("Ctrl-C stops everything.")

    async def _show_sample(self) -> None:
        from wayline.client import ApiError
        from wayline.standalone.launch.sample_job import show_sample

        try:
            await show_sample(self._installation, gateway=self.gateway_url, console=self._printer.console)
        except (ApiError, TimeoutError) as error:
            # The sample job is a courtesy: everything runs without it.
            self._printer.say(
                f"[red]The first job could not be shown:[/red] {error or type(error).__name__}; see the log file"
            )

    async def _watch(self, access: ServerAccess) -> None:
        from wayline.standalone.setup.migrations import connected_admin

        await keep_running(
            self._servers,
            connect=lambda: connected_admin(access),
            stuck=lambda: self._group.stuck() if self._group else None,
            print_line=self._printer.say,
        )


def keys_of(member: Member, access: ServerAccess) -> dict[str, object]:
    """Return the keys with which a service encrypts or signs; those that its environment names come first."""
    return {member.keys: access.credentials.service_keys[member.identity]} if member.keys else {}


def _load() -> None:
    for member in MEMBERS:
        member.load()
        # Before anything is migrated or served: a wrong setting ends the start here.
        member.check_settings()


async def _logged(changes: AsyncIterator[str]) -> AsyncIterator[str]:
    async for change in changes:
        log.info("migrated", change=change)
        yield change


async def _keep_machine_key(installation: Installation, access: ServerAccess) -> None:
    """Write a key to the data directory: its reader's commands act as an operator, also when keys are needed."""
    from wayline.client import MACHINE_KEY
    from wayline.gateway.adapters.keys import keep_machine_key
    from wayline.gateway.app import open_store
    from wayline.gateway.keys import OPEN_TENANT, mint

    path = installation.credentials / MACHINE_KEY
    if not path.exists():
        write_private(path, mint().secret + "\n")
    gateway = next(member for member in MEMBERS if member.identity == "gateway")
    store = await open_store(access.dsn_of(gateway.role, gateway.identity))
    try:
        await keep_machine_key(store, OPEN_TENANT, path.read_text().strip())
    finally:
        await store.close()


def _write_pgpass(installation: Installation, access: ServerAccess) -> None:
    """Write a password file, so that psql needs no password on its command line."""
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(access.admin_dsn)
    who = (unquote(parts.username or ""), unquote(parts.password or ""))
    lines = [(host or "*", str(port), "*", *who) for host, port in access.postgres_hosts]
    escaped = [":".join(w.replace("\\", "\\\\").replace(":", "\\:") for w in words) for words in lines]
    write_private(installation.credentials / "pgpass", "".join(f"{line}\n" for line in escaped))
