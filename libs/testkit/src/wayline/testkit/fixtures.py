"""Real servers as pytest fixtures: one a session (and xdist worker), started when first asked for."""

import asyncio
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pytest

from wayline.chassis import Bus, BusSettings
from wayline.chassis.topology import Limits, declare
from wayline.embedded import NatsServer, PostgresServer, minimal_config
from wayline.testkit.databases import Database, clone, drop, make_template
from wayline.testkit.guarded import Guarded, config, new_seeds
from wayline.testkit.platform import QUICK, Platform

T = TypeVar("T")

NatsFactory: TypeAlias = Callable[..., Awaitable[NatsServer]]
PostgresFactory: TypeAlias = Callable[..., Awaitable[PostgresServer]]

# A test's data need not survive a power cut; a kill -9 loses nothing that was committed.
FAST = {"fsync": "off", "full_page_writes": "off"}


@pytest.fixture(scope="session")
def server_dir() -> Iterator[Path]:
    """Make a directory that an unprivileged Postgres may enter: pytest's own are closed to others."""
    directory = Path(tempfile.mkdtemp(prefix="wayline-test-"))
    directory.chmod(0o711)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server(server_dir: Path) -> Iterator[PostgresServer]:
    """Run one Postgres with pgvector for the whole session: do not stop it."""
    server = PostgresServer(server_dir / "postgres", settings=FAST)
    run(server.start())
    try:
        run(make_template(server))
        yield server
    finally:
        run(server.stop())


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[Database]:
    """Make a fresh database for one test."""
    fresh = run(clone(postgres_server))
    yield fresh
    run(drop(fresh))


@pytest.fixture
async def nats_factory(tmp_path: Path) -> AsyncIterator[NatsFactory]:
    """Start NATS servers that the test may kill, pause and restart; they are gone after it."""
    started: list[NatsServer] = []

    async def start(*, config: str | None = None, port: int | None = None, sync_interval: str = "2m") -> NatsServer:
        data_dir = tmp_path / f"nats-{len(started)}"
        text = config or minimal_config(data_dir / "jetstream", sync_interval=sync_interval)
        server = NatsServer(data_dir, config=text, port=port)
        started.append(server)
        return await server.start()

    yield start
    for server in started:
        await server.kill()


@pytest.fixture
async def guarded_nats(nats_factory: NatsFactory, tmp_path: Path) -> AsyncIterator[Guarded]:
    """Run a server on which each service has only its own rights; fail a test in which one was refused anything."""
    seeds = new_seeds()
    guarded = Guarded(await nats_factory(config=config(tmp_path / "guarded", seeds)), seeds)
    yield guarded
    assert guarded.refusals() == []


@pytest.fixture
async def bus(nats_factory: NatsFactory) -> AsyncIterator[Bus]:
    """Connect a bus with every stream and consumer there is, in memory, for one test."""
    server = await nats_factory()
    bus = await Bus.connect(BusSettings(nats_url=server.url), service="test", exit_when_closed=False)
    async for _ in declare(bus.js, Limits(memory=True)):
        pass
    yield bus
    await bus.close()


@pytest.fixture
async def platform(
    guarded_nats: Guarded, database: Database, request: pytest.FixtureRequest
) -> AsyncIterator[Platform]:
    """Make a bus and a database, on which the test starts services; a parameter gives the streams' limits."""
    async with Platform.open(guarded_nats, database, limits=getattr(request, "param", QUICK)) as platform:
        yield platform


@pytest.fixture
async def postgres_factory(server_dir: Path) -> AsyncIterator[PostgresFactory]:
    """Start Postgres servers that the test may kill, pause and restart; they are gone after it."""
    started: list[PostgresServer] = []
    home = server_dir / secrets.token_hex(4)

    async def start(*, port: int | None = None) -> PostgresServer:
        server = PostgresServer(home / f"postgres-{len(started)}", port=port, settings=FAST)
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
