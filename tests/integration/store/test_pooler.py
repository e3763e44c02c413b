"""Behind PgBouncer in transaction mode tenants stay apart, though each transaction may have another session."""

from __future__ import annotations

import asyncio
import pwd
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from wayline.embedded import free_port
from wayline.gateway.app import open_store as open_gateways_store
from wayline.retrieval.postgres import open_store as open_retrievals_store
from wayline.router.app import open_store as open_routers_store
from wayline.store import Store
from wayline.store.connecting import connect_admin
from wayline.store.errors import PoolerUnannounced
from wayline.testkit import Database, Platform, until
from wayline.testkit.databases import PASSWORD, SCHEMAS, role_of

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")
NOBODY = "nobody"
SESSIONS = 3

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed: apt-get install pgbouncer")


@pytest.fixture(params=["", "search_path"])
def let_through(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def pooled(database: Database, server_dir: Path, let_through: str) -> AsyncIterator[str]:
    """Run PgBouncer before a database with few sessions for each role; return its host and port."""
    server, port = urlsplit(database.dsn), free_port()
    home = server_dir / f"pgbouncer-{port}"
    home.mkdir(mode=0o755)
    users = [(role_of(service), PASSWORD) for service in SCHEMAS]
    (home / "users.txt").write_text("".join(f'"{name}" "{password}"\n' for name, password in users))
    (home / "pgbouncer.ini").write_text(f"""
[databases]
* = host={server.hostname} port={server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = plain
auth_file = {home / "users.txt"}
pool_mode = transaction
default_pool_size = {SESSIONS}
ignore_startup_parameters = {let_through}
""")
    user = pwd.getpwnam(NOBODY).pw_name
    for file in home.iterdir():
        file.chmod(0o644)
    process = await asyncio.create_subprocess_exec(
        str(PGBOUNCER), "-u", user, str(home / "pgbouncer.ini"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    async def listens() -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return False
        writer.close()
        return True

    await until(listens, why="pgbouncer takes connections")
    yield f"127.0.0.1:{port}"
    process.terminate()
    await asyncio.wait_for(process.wait(), 10)


def through(where: str, database: Database, service: str, *, mode: str = "?pool_mode=transaction") -> str:
    return f"postgresql://{role_of(service)}:{PASSWORD}@{where}/{database.name}{mode}"


@pytest.mark.parametrize("let_through", [""], indirect=True)
async def test_two_tenants_never_see_each_other_through_a_pooler(pooled: str, database: Database):
    conn = await asyncpg.connect(database.dsn)
    await conn.execute(
        "CREATE TABLE gateway.marks (tenant text NOT NULL, place int);"
        "ALTER TABLE gateway.marks ENABLE ROW LEVEL SECURITY;"
        "ALTER TABLE gateway.marks FORCE ROW LEVEL SECURITY; CREATE POLICY own ON gateway.marks USING (tenant = "
        "current_setting('wayline.tenant', true)); GRANT ALL ON gateway.marks TO wayline_gateway"
    )
    await conn.close()
    stores = [await open_gateways_store(through(pooled, database, "gateway"), pool_size=8) for _ in range(2)]

    async def work(store: Store, tenant: str) -> set[str]:
        seen: set[str] = set()
        for place in range(40):
            await store.execute(tenant, "INSERT INTO marks VALUES ($1, $2)", tenant, place)
            seen |= {
                row["tenant"] for row in await store.fetch(tenant, "SELECT tenant FROM marks WHERE place <= $1", 50)
            }
            async with store.tenant(tenant) as own:
                seen |= {row["tenant"] for row in await own.fetch("SELECT tenant FROM marks")}
                assert await own.fetchval("SELECT count(*) FROM marks") == place + 1
        return seen

    tenants = [f"tenant-{number}" for number in range(8)]
    seen = await asyncio.gather(*(work(stores[at % 2], tenant) for at, tenant in enumerate(tenants)))

    assert seen == [{tenant} for tenant in tenants]
    for store in stores:
        await store.check()
        await store.close()


@pytest.mark.parametrize("let_through", [""], indirect=True)
async def test_each_service_has_its_sessions_settings_in_each_transaction(pooled: str, database: Database):
    router = await open_routers_store(through(pooled, database, "router"), pool_size=4)
    retrieval = await open_retrievals_store(through(pooled, database, "retrieval"), pool_size=4, wait_s=0)

    for _ in range(5):
        values = await asyncio.gather(*(router.fetchval("acme", "SHOW enable_seqscan") for _ in range(8)))
        assert set(values) == {"off"}
        values = await asyncio.gather(*(retrieval.fetchval("acme", "SELECT current_setting('jit')") for _ in range(8)))
        assert set(values) == {"off"}
    assert (await retrieval.fetchval("acme", "SELECT '[1,2]'::vector")).to_list() == [1, 2]
    await router.close()
    await retrieval.close()


async def test_a_pooler_that_the_address_does_not_name_is_refused(pooled: str, database: Database):
    with pytest.raises(PoolerUnannounced, match="pool_mode=transaction"):
        await Store.connect(through(pooled, database, "gateway", mode=""), schema="gateway")


async def test_migrations_want_the_servers_own_address():
    with pytest.raises(PoolerUnannounced, match="WAYLINE_POSTGRES_ADMIN_DSN"):
        await connect_admin("postgresql://postgres@127.0.0.1:1/wayline?pool_mode=transaction")


@pytest.mark.parametrize("let_through", [""], indirect=True)
async def test_jobs_run_through_a_pooler(
    pooled: str, database: Database, platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    async def migrate(_: Platform, name: str) -> str:
        return through(pooled, database, name)

    monkeypatch.setattr(Platform, "migrate", migrate)
    await platform.start("router", "tool_registry", "retrieval", "tracing", "executor")

    jobs = [f"j{number}" for number in range(12)]
    await asyncio.gather(*(platform.submit(job, "What is 2 + 2?") for job in jobs))
    ended = [await platform.wait_for(job) for job in jobs]

    assert {one.status for one in ended} == {"completed"}
