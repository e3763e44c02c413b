"""Services of the last release and of this version side by side, in every order, and back, while jobs run."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest
import pytest_asyncio

from tests.releases.builds import MIGRATE, last_release
from wayline.chassis.declare import declare
from wayline.contracts.tenants import CreateTenant, Tenant
from wayline.embedded import NatsServer, PostgresServer
from wayline.embedded.ports import free_port
from wayline.router.fair_share.backlogs import OWNED_FROM
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.store import migrate
from wayline.testkit import until
from wayline.testkit.databases import PASSWORD, SCHEMAS, Database, clone, drop, migrate_service
from wayline.testkit.effects_server import EffectsServer
from wayline.testkit.guarded import ADMIN, Guarded, config, identity_seeds
from wayline.testkit.processes import ServiceProcess

from .accidents import Accidents, metered, set_up
from .books import PAYMENT_USD
from .conftest import DELAY_MS, LIMITS, equip, shorten_ack_waits
from .hot_tables import HOT, longest_wait, role_of_schema, with_changes_of_a_hot_table
from .platform import EVERY_EFFECT, IDEMPOTENT, ONCE, TENANT, FaultPlatform, calls, says
from .test_conservation import balanced, read_books, seed_of_this_run

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow, pytest.mark.timeout(900)]

DECIDE = ("router", "executor", "tool_registry")
"""Replaced in every order."""
BESIDE = ("gateway", "tracing", "retrieval", "notifier")
"""Replaced between those, each time another one first."""
SERVICES = (*DECIDE, *BESIDE)
IN_FLIGHT = 4
BETWEEN = 3
"""How many jobs end between two replacements: both builds have worked on some."""
LOAD_WITHIN_S = 800.0
MONEY_JOBS = 240
WAITING = 8
"""Jobs of a tenant that wait for its turn, or a few more."""
RECORDS_BETWEEN = 10
"""How much is written to logs between two replacements."""
PATHS = ("jobs", "agents", "tools", "mcp/servers", "providers", "models", "sessions", "schedules", "costs", "overview")


def orders() -> Iterator[tuple[str, ...]]:
    """Yield every order of the services that decide, each with the others between them in another turn."""
    for n, order in enumerate(itertools.permutations(DECIDE)):
        first, second, third, last = BESIDE[n % 4 :] + BESIDE[: n % 4]
        yield order[0], first, order[1], second, order[2], third, last


ORDERS = tuple(orders())


@dataclass
class Load:
    """Jobs that are submitted as others end, until it is told to stop."""

    platform: FaultPlatform
    name: str
    jobs: list[str] = field(default_factory=list)
    open: set[str] = field(default_factory=set)
    stopping: bool = False

    async def run(self) -> None:
        await until(self._step, within=LOAD_WITHIN_S, why="the test has what it wants")

    async def _step(self) -> bool:
        while len(self.open) < IN_FLIGHT and not self.stopping:
            job_id = f"{self.name}-{len(self.jobs)}"
            session = f"{self.name}-talk" if len(self.jobs) % 4 == 3 else None
            plan = (calls(*EVERY_EFFECT), calls(ONCE, IDEMPOTENT), says("done"))
            await self.platform.submit_plan(job_id, *plan, session=session)
            self.jobs.append(job_id)
            self.open.add(job_id)
        self.open -= await self.platform.advance(*self.open)
        return self.stopping

    async def goes_on(self) -> None:
        """Wait until some more jobs have ended."""
        wanted = len(self.jobs) - len(self.open) + BETWEEN
        await until(lambda: len(self.jobs) - len(self.open) >= wanted, within=120, why="jobs go on")


@dataclass
class Upgrade:
    """A platform whose services are of two builds."""

    platform: FaultPlatform
    python: Path
    """Of the last release."""

    def start(self, name: str, *, old: bool) -> ServiceProcess:
        fleet = self.platform.fleet
        # Two processes that are there at once answer at two ports.
        if name == "gateway":
            self.platform.port = free_port()
            fleet.set("gateway", WAYLINE_HTTP_PORT=str(self.platform.port))
        if name == "tracing":
            self.platform.tracing_port = free_port()
            fleet.set("tracing", WAYLINE_HEALTH_PORT=str(self.platform.tracing_port))
        return fleet.spawn_build(name, self.python) if old else fleet.spawn(name)

    async def replace(self, name: str, *, old: bool) -> None:
        """Start a process of the one build, then drain that of the other."""
        before = self.platform.fleet.running(name)
        await self.start(name, old=old).ready()
        for process in before:
            process.drain()
        for process in before:
            assert await process.ended() == 0, process.tail

    async def answers(self) -> None:
        """Check that every list that the gateway asks others for is answered."""
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{self.platform.port}", timeout=30) as http:
            for path in PATHS:
                answer = await http.get(f"/v1/{path}")
                assert answer.status_code == 200, f"{path}: {answer.text}"


@asynccontextmanager
async def opened(postgres_server: PostgresServer, server_dir: Path) -> AsyncIterator[Upgrade]:
    """Make a bus and a database as the last release makes them; no service is started."""
    python = await asyncio.to_thread(last_release)
    home, seeds = server_dir / f"upgrade-{secrets.token_hex(4)}", identity_seeds()
    home.mkdir()
    server = NatsServer(home / "nats", config=config(home / "nats" / "jetstream", seeds))
    effects = EffectsServer(home / "effects.txt", delay_ms=DELAY_MS)
    database = await clone(postgres_server)
    try:
        await server.start()
        await effects.start()
        words = [str(python), "-c", MIGRATE, database.dsn, PASSWORD, server.url, seeds[ADMIN]]
        await asyncio.to_thread(subprocess.run, words, check=True)
        async with ChatServer(turns(Say())) as chat:
            made = Database(database.name, postgres_server, tables=True)
            async with FaultPlatform.open(Guarded(server, seeds), made, limits=None) as platform:
                await shorten_ack_waits(platform.bus.js)
                platform.chat, platform.effects, chat.script = chat, effects, platform.script
                platform.fleet = await platform.make_fleet(home, *SCHEMAS)
                # An executor that drains may still have its read when another one has taken over.
                platform.reads_overlap = True
                equip(platform)
                await platform.watch()
                yield Upgrade(platform, python)
    finally:
        effects.kill()
        await server.kill()
        shutil.rmtree(home, ignore_errors=True)
        await drop(database)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def upgrade(postgres_server: PostgresServer, server_dir: Path) -> AsyncIterator[Upgrade]:
    """Start the services of the last release."""
    async with opened(postgres_server, server_dir) as found:
        for process in [found.start(name, old=True) for name in SERVICES]:
            await process.ready()
        yield found


async def end_well(platform: FaultPlatform, jobs: list[str]) -> None:
    """Every job ends once, no `once` acted twice, logs are whole, tracing says what they say, nothing is put aside."""
    await platform.until_ended(*jobs, within=180)
    await platform.until_quiet(60)
    await platform.check(*jobs)
    await platform.until_traced(*jobs, within=120)
    assert {(await platform.job(job_id)).life.status for job_id in jobs} == {"completed"}
    assert await platform.dead_letters() == []


async def migrate_to_this_version(platform: FaultPlatform) -> None:
    plain = Database(platform.database.name, platform.database.server)
    for name in SCHEMAS:
        await migrate_service(plain, name)
    _ = [change async for change in declare(platform.bus.js, LIMITS)]
    await shorten_ack_waits(platform.bus.js)


async def test_this_version_migrates_under_the_services_of_the_last_release(upgrade: Upgrade):
    platform = upgrade.platform
    load = Load(platform, "migrating")
    running = asyncio.create_task(load.run())
    await load.goes_on()

    await migrate_to_this_version(platform)
    await load.goes_on()

    load.stopping = True
    await running
    await end_well(platform, load.jobs)
    await upgrade.answers()


async def test_no_service_waits_a_second_while_hot_tables_are_migrated(upgrade: Upgrade, tmp_path: Path):
    platform, over = upgrade.platform, asyncio.Event()
    load = Load(platform, "hot")
    running = asyncio.create_task(load.run())
    await load.goes_on()
    watching = asyncio.create_task(longest_wait(platform, over))

    for schema, table in HOT.items():
        directory = await asyncio.to_thread(with_changes_of_a_hot_table, schema, tmp_path)
        async with platform.superuser() as conn:
            # Somebody's long transaction: what waits for an exclusive lock waits for it.
            async with conn.transaction():
                await conn.execute(f"LOCK {schema}.{table} IN ROW EXCLUSIVE MODE")
                dsn = platform.database.dsn
                change = migrate(
                    dsn, schema=schema, role=role_of_schema(schema), password=PASSWORD, directory=directory
                )
                migrating = asyncio.create_task(change)
                await load.goes_on()
                assert not migrating.done()
            assert await migrating == ["9998_more.sql", "9999_index.sql", *sorted(functions_of(directory))]
        await load.goes_on()

    over.set()
    waited = await watching
    print(f"a service waited for a lock at most {waited:.3f} s, while {len(load.jobs)} jobs ran")
    load.stopping = True
    await running
    await end_well(platform, load.jobs)
    assert waited < 1


def functions_of(directory: Path) -> list[str]:
    return [f"functions/{file.name}" for file in (directory.parent / "functions").glob("*.sql")]


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: "-".join(order[::2]))
async def test_services_are_replaced_in_any_order_and_back(upgrade: Upgrade, order: tuple[str, ...]):
    platform = upgrade.platform
    load = Load(platform, f"order-{ORDERS.index(order)}")
    running = asyncio.create_task(load.run())
    try:
        for old in (False, True):
            for name in order:
                await upgrade.replace(name, old=old)
                await load.goes_on()
                await upgrade.answers()
    finally:
        load.stopping = True
        await running

    await end_well(platform, load.jobs)


async def test_a_router_rolls_back_once_no_ticket_waits_for_a_turn(postgres_server: PostgresServer, server_dir: Path):
    async with opened(postgres_server, server_dir) as upgrade:
        platform = upgrade.platform
        await migrate_to_this_version(platform)
        for process in [upgrade.start(name, old=True) for name in ("tool_registry", "tracing")]:
            await process.ready()
        await upgrade.start("router", old=False).ready()
        await platform.bus.ask(CreateTenant(tenant="other"), Tenant)
        # The backlog is the other tenant's, and nobody runs its jobs.
        for tenant in ("other", TENANT):
            for n in range(OWNED_FROM + WAITING):
                await platform.submit_plan(f"{tenant}-{n}", says("done"), tenant=tenant)
            await platform.wait_until_empty("SUBMIT")
        left_waiting = await waiting(platform)

        platform.fleet.set("router", WAYLINE_ROUTER_SHARE_LANES="false")
        await upgrade.replace("router", old=False)
        await until(lambda: nobody_waits(platform), within=60, why="the waiting tickets are in the backlog")
        await upgrade.replace("router", old=True)
        await upgrade.start("executor", old=True).ready()

        await platform.wait_until_empty("RUN")
        assert left_waiting > 0
        await end_well(platform, [f"{TENANT}-{n}" for n in range(OWNED_FROM + WAITING)])


async def waiting(platform: FaultPlatform) -> int:
    return (await platform.bus.js.consumer_info("RUN", "interactive_waiting")).num_pending or 0


async def nobody_waits(platform: FaultPlatform) -> bool:
    return await waiting(platform) == 0


@pytest.mark.timeout(600)
async def test_money_is_conserved_while_services_are_replaced_and_back(
    postgres_server: PostgresServer, server_dir: Path
):
    async with opened(postgres_server, server_dir) as upgrade:
        platform = upgrade.platform
        platform.provider = await platform.simulate(models=metered())
        paid = platform.effects.settings(tools={"pay_once": {"charge": {"usd": str(PAYMENT_USD)}}})
        platform.fleet.set("tool_registry", WAYLINE_TOOL_REGISTRY_SERVERS=[paid])
        platform.fleet.set("tracing", WAYLINE_TRACING_GAUGES_EVERY_S="0.2")
        for name in ("router", "executor"):
            platform.fleet.set(name, **platform.provider.environment)
        for process in [upgrade.start(name, old=True) for name in (*DECIDE, "executor", "tracing")]:
            await process.ready()
        await set_up(platform)
        accidents = Accidents(platform, seed=seed_of_this_run(), jobs=MONEY_JOBS, strikes={"cancel": 9}, deaths=0)
        print(f"conservation: WAYLINE_FAULT_SEED={accidents.seed}")
        running = asyncio.create_task(accidents.run(within=400))

        await migrate_to_this_version(platform)
        replaced = []
        for old, name in itertools.product((False, True), (*DECIDE, "tracing")):
            if running.done():
                break
            seen = platform.records_seen + RECORDS_BETWEEN
            await upgrade.replace(name, old=old)
            replaced.append(name)
            await until(lambda seen=seen: platform.records_seen >= seen or running.done(), within=120, why="jobs run")
        print(f"{len(replaced)} services were replaced while jobs ran")
        assert len(replaced) > len(DECIDE), "this version took over while jobs ran"
        await running

        books, _ = await read_books(platform, accidents)
        await balanced(platform, books)
