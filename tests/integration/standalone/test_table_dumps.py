"""The tables of a backup: as of one moment, of every tenant, also by an administrator who is no superuser."""

from __future__ import annotations

import asyncio
import errno
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import asyncpg
import pytest

from wayline.embedded import PostgresServer
from wayline.embedded.binaries import postgres_clients
from wayline.standalone.backup.backup_files import BackupReader, BackupWriter
from wayline.standalone.backup.database_dump import _address, dump_tables, restore_tables, tables_moment
from wayline.standalone.backup.manifest import Manifest
from wayline.standalone.backup.restore_backup import restore_backup
from wayline.standalone.errors import BackupFailed
from wayline.standalone.setup.credentials import Credentials
from wayline.standalone.setup.installation import ServerAccess
from wayline.testkit import until
from wayline.testkit.databases import Database, clone, drop
from wayline.testkit.fixtures import NatsFactory, run

TABLE = """
CREATE SCHEMA ours;
CREATE TABLE ours.notes (tenant text, words text);
ALTER TABLE ours.notes ENABLE ROW LEVEL SECURITY;
ALTER TABLE ours.notes FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON ours.notes USING (current_setting('wayline.tenant', true) IN (tenant, '*'));
"""
PASSWORD = "it's:secret@"
MANY = "INSERT INTO ours.notes SELECT 'acme', gen_random_uuid() FROM generate_series(1, 50000)"


@dataclass
class Pair:
    source: Database
    target: Database
    owner: str

    def dsn(self, database: Database) -> str:
        return database.as_role(self.owner, PASSWORD)


@pytest.fixture
async def pair(postgres_server: PostgresServer) -> AsyncIterator[Pair]:
    """Two databases of an owner who is no superuser."""
    source, target = await clone(postgres_server), await clone(postgres_server)
    owner = f"owner_{secrets.token_hex(4)}"
    admin: Any = await asyncpg.connect(postgres_server.dsn())
    await admin.execute(f"CREATE ROLE {owner} LOGIN PASSWORD 'it''s:secret@'")
    for database in (source, target):
        await admin.execute(f"ALTER DATABASE {database.name} OWNER TO {owner}")
    yield Pair(source, target, owner)
    for database in (source, target):
        await drop(database)
    await admin.execute(f"DROP ROLE {owner}")
    await admin.close()


async def notes(dsn: str) -> list[tuple[str, str]]:
    conn = await asyncpg.connect(dsn, server_settings={"wayline.tenant": "*"})
    try:
        return [tuple(row) for row in await conn.fetch("SELECT * FROM ours.notes ORDER BY 1, 2")]
    finally:
        await conn.close()


async def test_tables_are_those_of_the_moment_of_every_tenant(pair: Pair):
    conn = await asyncpg.connect(pair.dsn(pair.source), server_settings={"wayline.tenant": "*"})
    await conn.execute(TABLE + "INSERT INTO ours.notes VALUES ('acme', 'one'), ('other', 'two')")
    dumped: list[bytes] = []

    async with tables_moment(pair.dsn(pair.source), ["ours"]) as moment:
        await conn.execute("INSERT INTO ours.notes VALUES ('acme', 'later')")
        version = await dump_tables(pair.dsn(pair.source), moment, ["ours"], dumped.append)  # type: ignore
    await conn.close()
    await restore_tables(pair.dsn(pair.target), version, moment.postgres_major, dumped)

    assert await notes(pair.dsn(pair.target)) == [("acme", "one"), ("other", "two")]


async def test_parameters_of_an_address_hide_no_row_and_no_password(pair: Pair):
    conn = await asyncpg.connect(pair.dsn(pair.source), server_settings={"wayline.tenant": "*"})
    await conn.execute(TABLE + "INSERT INTO ours.notes VALUES ('acme', 'one')")
    await conn.close()
    dsn = pair.dsn(pair.source).replace(f":{quote(PASSWORD, safe='')}@", "@")
    assert dsn != pair.dsn(pair.source)
    dsn = f"{dsn}&{urlencode({'password': PASSWORD, 'options': '-c work_mem=8MB'}, quote_via=quote)}"
    dumped: list[bytes] = []

    async with tables_moment(dsn, ["ours"]) as moment:
        version = await dump_tables(dsn, moment, ["ours"], dumped.append)  # type: ignore
    await restore_tables(pair.dsn(pair.target), version, moment.postgres_major, dumped)

    assert await notes(pair.dsn(pair.target)) == [("acme", "one")]
    # Other users of the machine see what a program was called with.
    assert "secret" not in _address(dsn)[0]


async def test_a_dump_that_nobody_takes_ends_its_program(pair: Pair, monkeypatch: pytest.MonkeyPatch):
    conn = await asyncpg.connect(pair.dsn(pair.source), server_settings={"wayline.tenant": "*"})
    await conn.execute(TABLE + MANY)
    await conn.close()
    started: list[Any] = []

    async def start(*command: str, **options: Any) -> Any:
        started.append(await create_subprocess_exec(*command, **options))
        return started[-1]

    create_subprocess_exec = asyncio.create_subprocess_exec
    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)

    def full(_: bytes) -> None:
        # A slow disk: so much is unread meanwhile that the program's pipe is not read any more.
        pipe = started[-1].stdout._transport
        run(until(lambda: not pipe.is_reading(), why="more waits than is taken"))
        raise OSError(errno.ENOSPC, "No space left on device")

    async with asyncio.timeout(30):
        with pytest.raises(OSError, match="No space left"):
            async with tables_moment(pair.dsn(pair.source), ["ours"]) as moment:
                await dump_tables(pair.dsn(pair.source), moment, ["ours"], full)  # type: ignore


async def test_half_a_dump_leaves_no_table(pair: Pair):
    conn = await asyncpg.connect(pair.dsn(pair.source), server_settings={"wayline.tenant": "*"})
    await conn.execute(TABLE + MANY)
    dumped: list[bytes] = []
    async with tables_moment(pair.dsn(pair.source), ["ours"]) as moment:
        version = await dump_tables(pair.dsn(pair.source), moment, ["ours"], dumped.append)  # type: ignore
    await conn.close()

    with pytest.raises(BackupFailed, match="pg_restore ended"):
        await restore_tables(pair.dsn(pair.target), version, moment.postgres_major, [b"".join(dumped)[:200_000]])

    conn = await asyncpg.connect(pair.dsn(pair.target))
    assert await conn.fetchval("SELECT to_regnamespace('ours')") is None
    await conn.close()


async def test_an_old_server_refuses_a_dump_of_a_newer_one(pair: Pair):
    with pytest.raises(BackupFailed, match="restore them into version 18 or newer"):
        await restore_tables(pair.dsn(pair.target), 18, 16, [])


async def test_nothing_is_deleted_for_tables_that_cannot_be_restored(
    nats_factory: NatsFactory, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    conn = await asyncpg.connect(database.dsn)
    await conn.execute(TABLE)
    now = datetime.now(UTC)
    BackupWriter(tmp_path / "backup").finish(
        Manifest(
            **{"wayline": "0.2.0", "began_at": now, "ended_at": now, "schemas": ["ours"], "dumped_by": 99},
            **{"logs_before": 0, "streams": [], "credentials": False, "parts": {}},
        )
    )
    access = ServerAccess((await nats_factory()).url, database.dsn, Credentials({}, {}), own_bus=False)
    begun: list[str] = []
    monkeypatch.setenv("PATH", "")

    with pytest.raises(BackupFailed, match="no pg_restore of version 99 or newer"):
        await restore_backup(
            access,
            BackupReader(tmp_path / "backup"),
            tell=begun.append,
            name="data",
            replace=True,
            begun=lambda: begun.append("begun"),
        )

    assert begun == []
    assert await conn.fetchval("SELECT to_regclass('ours.notes')") is not None
    await conn.close()


def test_the_wheel_has_clients_for_the_oldest_server_and_the_newest():
    assert set(postgres_clients("pg_dump")) == set(postgres_clients("pg_restore")) == {16, 18}
