"""Real servers as pytest fixtures: one a session (and xdist worker), started when first asked for."""

import asyncio
import secrets
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pytest
import pytest_asyncio

from wayline.chassis import Bus, BusSettings
from wayline.chassis.stream_limits import Limits
from wayline.embedded import NatsServer, PostgresServer, minimal_config
from wayline.embedded.datadir import DataDirLock
from wayline.embedded.process import Child
from wayline.testkit.databases import Database, clone, clone_with_tables, drop, make_tables, make_template, run_sql
from wayline.testkit.fork_server import fork_program
from wayline.testkit.fresh_streams import make_streams
from wayline.testkit.guarded import Guarded, config, identity_seeds
from wayline.testkit.lent_servers import LentServers
from wayline.testkit.made_once import copy_made, make_once
from wayline.testkit.platform import QUICK, Platform
from wayline.testkit.server_directory import server_directory

T = TypeVar("T")

NatsFactory: TypeAlias = Callable[..., Awaitable[NatsServer]]
PostgresFactory: TypeAlias = Callable[..., Awaitable[PostgresServer]]

# A test's data need not survive a power cut; a kill -9 loses nothing that was committed.
# Nor does anybody guess a password: each connection would spend 4 ms on them.
# A database is cloned for each test: the kernel copies its 870 files in two thirds of the time that Postgres takes.
FAST = {"fsync": "off", "full_page_writes": "off", "scram_iterations": "1", "file_copy_method": "clone"}


class ForkedNats(NatsServer):
    """A NATS server that a small process starts."""

    def _spawn(self, lock: DataDirLock) -> Child:
        return fork_program(self.command, cwd=self.data_dir, log=self.log, keep_fds=[lock.fd])


@pytest.fixture(scope="session")
def server_dir() -> Iterator[Path]:
    """Make a directory that an unprivileged Postgres may enter: pytest's own are closed to others."""
    with server_directory() as directory:
        yield directory


@pytest.fixture(scope="session")
def postgres_server(server_dir: Path) -> Iterator[PostgresServer]:
    """Run one Postgres with pgvector for the whole session: do not stop it."""
    server = copied_postgres(make_once("templates", make_templates, own=server_dir), server_dir / "postgres")
    run(server.start())
    try:
        yield server
    finally:
        run(server.stop())


def make_templates(place: Path) -> None:
    """Make the data of a Postgres that has the databases from which those of tests are cloned."""
    server = PostgresServer(place / "postgres", settings=FAST)
    run(server.start())
    # The superuser's is from before the setting.
    run(run_sql(server.dsn(), f"ALTER ROLE postgres PASSWORD '{server.password}'"))
    run(make_template(server))
    run(make_tables(server))
    run(server.stop())


@pytest.fixture(scope="session")
def empty_cluster(server_dir: Path) -> Path:
    """Make the data of a Postgres in which nothing was done: to copy it costs a tenth of making it."""
    return make_once("empty_cluster", _make_cluster, own=server_dir)


def _make_cluster(place: Path) -> None:
    server = PostgresServer(place / "postgres", settings=FAST)
    run(server.start())
    run(server.stop())


def copied_postgres(made: Path, to: Path, *, port: int | None = None) -> PostgresServer:
    """Return a server on a copy of such data."""
    to.parent.mkdir(parents=True, exist_ok=True)
    copy_made(made / "postgres", to)
    return PostgresServer(to, port=port, settings=FAST)


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[Database]:
    """Make a fresh database for one test, with the tables of every service."""
    fresh = run(clone_with_tables(postgres_server))
    yield fresh
    run(drop(fresh))


@pytest.fixture
def empty_database(postgres_server: PostgresServer) -> Iterator[Database]:
    """Make a fresh database without tables for one test."""
    fresh = run(clone(postgres_server))
    yield fresh
    run(drop(fresh))


@pytest.fixture(scope="session")
def nats_class() -> type[NatsServer]:
    """Return what starts a NATS server; tests of that itself name their own."""
    return ForkedNats


@pytest.fixture
async def nats_factory(server_dir: Path, nats_class: type[NatsServer]) -> AsyncIterator[NatsFactory]:
    """Start NATS servers that the test may kill, pause and restart; they are gone after it."""
    started: list[NatsServer] = []
    home = server_dir / secrets.token_hex(4)

    async def start(
        *, config: str | None = None, port: int | None = None, sync_interval: str = "2m", data_dir: Path | None = None
    ) -> NatsServer:
        place = data_dir or home / f"nats-{len(started)}"
        text = config or minimal_config(place / "jetstream", sync_interval=sync_interval)
        server = nats_class(place, config=text, port=port)
        started.append(server)
        return await server.start()

    yield start
    for server in started:
        await server.kill()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def lent_servers(server_dir: Path) -> Iterator[LentServers]:
    """Keep NATS servers from one test to the next."""
    servers = LentServers()
    yield servers
    run(servers.end())


@asynccontextmanager
async def lend(servers: LentServers, server_dir: Path, *, is_guarded: bool) -> AsyncIterator[tuple[NatsServer, bool]]:
    """Lend a server, which may be one where each service has only its rights, and say whether a test has used it."""
    kind = "guarded" if is_guarded else "plain"
    server = servers.borrow(kind)
    is_used = server is not None
    if server is None:
        home = server_dir / f"{kind}-{secrets.token_hex(4)}"
        store = home / "jetstream"
        text = config(store, identity_seeds()) if is_guarded else minimal_config(store)
        server = await ForkedNats(home, config=text).start()
    pid = server.pid
    try:
        yield server, is_used
    finally:
        await servers.give_back(kind, server, pid=pid)


@pytest.fixture
async def guarded_nats(lent_servers: LentServers, server_dir: Path) -> AsyncIterator[Guarded]:
    """Lend a server on which each service has only its own rights; fail a test in which one was refused anything."""
    async with lend(lent_servers, server_dir, is_guarded=True) as (server, is_used):
        guarded = Guarded(server, identity_seeds(), is_used=is_used, log_from=server.log.stat().st_size)
        yield guarded
        refusals = guarded.refusals()
    assert refusals == []


@pytest.fixture
async def bus(lent_servers: LentServers, server_dir: Path) -> AsyncIterator[Bus]:
    """Connect a bus with every stream and consumer there is, in memory, for one test."""
    async with lend(lent_servers, server_dir, is_guarded=False) as (server, is_used):
        bus = await Bus.connect(BusSettings(nats_url=server.url), service="test", exit_when_closed=False)
        await make_streams(bus, Limits(memory=True), is_used=is_used)
        yield bus
        await bus.close()


@pytest.fixture
async def platform(
    guarded_nats: Guarded, database: Database, request: pytest.FixtureRequest
) -> AsyncIterator[Platform]:
    """Make a bus and a database, on which the test starts services; a parameter gives the streams' limits."""
    async with Platform.open(guarded_nats, database, limits=getattr(request, "param", QUICK)) as platform:
        yield platform


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_servers(postgres_server: PostgresServer, server_dir: Path) -> AsyncIterator[tuple[Guarded, Database]]:
    """Start a NATS server and make a database for all tests of a file, whose event loop is the file's too."""
    database, seeds = await clone_with_tables(postgres_server), identity_seeds()
    home = server_dir / f"module-{secrets.token_hex(4)}"
    server = await ForkedNats(home, config=config(home / "jetstream", seeds)).start()
    guarded = Guarded(server, seeds)
    try:
        yield guarded, database
        assert guarded.refusals() == []
    finally:
        await server.kill()
        shutil.rmtree(home, ignore_errors=True)
        await drop(database)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_platform(module_servers: tuple[Guarded, Database]) -> AsyncIterator[Platform]:
    """Make a platform for all tests of a file."""
    async with Platform.open(*module_servers) as platform:
        yield platform


@pytest.fixture
async def postgres_factory(server_dir: Path, empty_cluster: Path) -> AsyncIterator[PostgresFactory]:
    """Start Postgres servers that the test may kill, pause and restart; they are gone after it."""
    started: list[PostgresServer] = []
    home = server_dir / secrets.token_hex(4)

    async def start(*, port: int | None = None) -> PostgresServer:
        server = copied_postgres(empty_cluster, home / f"postgres-{len(started)}", port=port)
        started.append(server)
        return await server.start()

    yield start
    for server in started:
        await server.kill()
    shutil.rmtree(home, ignore_errors=True)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine for a synchronous fixture, leaving the test's own event loop alone."""
    # On this thread: a server ends with the thread that started it.
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()
