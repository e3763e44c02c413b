"""`wayline up`: the servers, the migrations and every service, from one command until Ctrl-C."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import structlog

from wayline.contracts.errors import Unavailable
from wayline.embedded import NatsServer, require_free
from wayline.standalone import logs
from wayline.standalone.setup.credentials import Credentials, write_private
from wayline.standalone.setup.installation import Installation, Place, write_environments
from wayline.standalone.servers.embedded import Server, Watch, database_dsn, nats_server, postgres_server
from wayline.standalone.services import MEMBERS, Fleet, Member
from wayline.standalone.settings import Settings
from wayline.standalone.launch.stopping import Stopped, Stopping
from wayline.standalone.launch.step_printer import Teller

if TYPE_CHECKING:
    from wayline.chassis import Bus

log = structlog.get_logger()


async def up(settings: Settings, *, servers_only: bool = False, sample: bool = False) -> None:
    """Run until a signal; then stop everything in order."""
    teller, stopping, installation = Teller(), Stopping(), Installation(settings.data_dir.absolute())
    stopping.listen()
    installation.prepare()
    with installation.held():
        logs.configure(settings, file=installation.logs / "wayline.log")
        try:
            async with AsyncExitStack() as stack:
                await _Up(settings, installation, teller, stopping, stack).run(servers_only=servers_only, sample=sample)
        except Stopped:
            pass
        teller.say("Stopped; everything is kept in " + str(installation.root))


class _Up:
    """One run: what is started goes on the stack, and is stopped in the opposite order."""

    def __init__(
        self, settings: Settings, installation: Installation, teller: Teller, stopping: Stopping, stack: AsyncExitStack
    ) -> None:
        self._settings = settings
        self._installation = installation
        self._teller = teller
        self._stopping = stopping
        self._stack = stack
        self._servers: list[Server] = []
        self._fleet: Fleet | None = None

    async def run(self, *, servers_only: bool, sample: bool) -> None:
        if not servers_only:
            require_free(self._settings.http_port, server="the gateway", variable="WAYLINE_HTTP_PORT")
        self._teller.say(f"[bold]Wayline[/bold] in {self._installation.root}")
        place = await self._stopping.or_stop(self._start_servers(load=not servers_only))
        await self._stopping.or_stop(self._migrate(place))
        write_environments(self._installation, place)
        _write_pgpass(self._installation, place)
        await self._stopping.or_stop(_keep_machine_key(self._installation, place))
        if not servers_only:
            await self._start_services(place)
        self._installation.say_running(
            gateway=None if servers_only else self.gateway_url, nats=place.nats_address, servers_only=servers_only
        )
        self._teller.say(f"Ready after {self._teller.elapsed_s:.1f} s.\n")
        if sample and not servers_only:
            await self._stopping.or_stop(self._show_sample())
        self._tell_where(place, servers_only=servers_only)
        await self._stay(place)

    @property
    def gateway_url(self) -> str:
        return f"http://{self._settings.http_host}:{self._settings.http_port}"

    async def _start_servers(self, *, load: bool) -> Place:
        """Start what is not somebody else's; meanwhile the services' code is loaded, which takes longer than both."""
        settings, teller = self._settings, self._teller
        loading = asyncio.create_task(asyncio.to_thread(_load)) if load else None
        with teller.step("Starting the servers …") as step:
            credentials = self._installation.load_credentials()
            async with asyncio.TaskGroup() as starting:
                database = starting.create_task(self._start_postgres())
                bus = starting.create_task(self._start_nats(credentials))
            step.done = f"{database.result()[1]}, {bus.result()[1]}"
        if loading is not None:
            with teller.step("Loading the services …") as step:
                await loading
                step.done = "services loaded"
        return Place(
            nats_url=bus.result()[0],
            admin_dsn=database.result()[0],
            credentials=credentials,
            own_bus=settings.nats_url is None or settings.nats_accounts_file is not None,
            nats_seed=settings.nats_seed,
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

    async def _migrate(self, place: Place) -> None:
        from wayline.standalone.setup.migrations import migrate_all

        with self._teller.step("Migrating …") as step:
            changes = [said async for said in _logged(migrate_all(place, self._settings.limits))]
            step.done = (
                f"database and streams: {len(changes)} changes" if changes else "database and streams up to date"
            )

    async def _start_services(self, place: Place) -> None:
        from wayline.chassis import BusSettings

        def settings_of(member: Member) -> BusSettings:
            return BusSettings(
                nats_url=place.nats_url,
                nats_seed=place.seed_of(member.identity),
                nats_accounts=place.own_bus,
                postgres_dsn=place.dsn_of(member.role, member.identity) if member.schema else None,
                health_port=None,
            )

        fleet = Fleet(MEMBERS, settings_of)
        self._fleet = fleet
        self._stack.push_async_callback(self._stopping.drain, fleet)
        with self._teller.step("Starting the services …") as step:
            await self._stopping.or_stop(fleet.start())
            step.done = ", ".join(member.name for member in MEMBERS)

    def _tell_where(self, place: Place, *, servers_only: bool) -> None:
        from wayline.standalone.launch.ready_text import next_job, where

        self._teller.say(where(self._installation, place, gateway=None if servers_only else self.gateway_url))
        if not servers_only:
            self._teller.say(next_job(self.gateway_url, place.nats_address))
        self._teller.say("Ctrl-C stops everything.")

    async def _show_sample(self) -> None:
        from wayline.client import ApiError
        from wayline.standalone.launch.sample_job import show

        try:
            await show(self._installation, gateway=self.gateway_url, console=self._teller.console)
        except (ApiError, TimeoutError) as error:
            # What was to be shown is a courtesy: everything runs.
            self._teller.say(
                f"[red]The first job could not be shown:[/red] {error or type(error).__name__}; see the log file"
            )

    async def _stay(self, place: Place) -> None:
        """Until a signal, with the servers watched."""
        await self._stopping.or_stop(self._watch(place))

    async def _watch(self, place: Place) -> None:
        if not any(isinstance(server, NatsServer) for server in self._servers):
            return await Watch(self._servers, said=self._teller.say).run()
        from wayline.standalone.setup.migrations import connected_admin

        async with AsyncExitStack() as connections:
            bus: Bus | None = None

            async def stores() -> None:
                nonlocal bus
                # Not before the watch begins: a bus that has just died is first to be started again.
                if bus is None:
                    bus = await connections.enter_async_context(connected_admin(place))
                await bus.check()
                if self._fleet and (stuck := self._fleet.stuck()):
                    raise Unavailable("the bus", detail=f"{stuck}.> gets no ack")

            await Watch(self._servers, said=self._teller.say, stores=stores).run()


def _load() -> None:
    for member in MEMBERS:
        member.load()
        # Here and not where it is built: nothing is migrated or served with a setting that is wrong.
        member.check_settings()


async def _logged(changes: AsyncIterator[str]) -> AsyncIterator[str]:
    async for change in changes:
        log.info("migrated", change=change)
        yield change


async def _keep_machine_key(installation: Installation, place: Place) -> None:
    """Let the commands of who may read the data directory act as an operator, also when keys are needed."""
    from wayline.client import MACHINE_KEY
    from wayline.gateway.adapters.keys import keep_machine_key
    from wayline.gateway.app import open_store
    from wayline.gateway.keys import OPEN_TENANT, mint

    path = installation.credentials / MACHINE_KEY
    if not path.exists():
        write_private(path, mint().secret + "\n")
    gateway = next(member for member in MEMBERS if member.identity == "gateway")
    store = await open_store(place.dsn_of(gateway.role, gateway.identity))
    try:
        await keep_machine_key(store, OPEN_TENANT, path.read_text().strip())
    finally:
        await store.close()


def _write_pgpass(installation: Installation, place: Place) -> None:
    """So that psql needs no password on a command line."""
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(place.admin_dsn)
    words = (
        parts.hostname or "*",
        str(parts.port or 5432),
        "*",
        unquote(parts.username or ""),
        unquote(parts.password or ""),
    )
    write_private(
        installation.credentials / "pgpass", ":".join(w.replace("\\", "\\\\").replace(":", "\\:") for w in words) + "\n"
    )
