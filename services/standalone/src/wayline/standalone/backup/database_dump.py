"""The tables: read by `pg_dump` as of one moment, and written by `pg_restore` in one transaction."""

from __future__ import annotations

import asyncio
import os
import shutil
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from wayline.embedded.binaries import postgres_clients
from wayline.standalone.backup.backup_files import CHUNK_BYTES, Write
from wayline.standalone.errors import BackupFailed
from wayline.standalone.setup.migrations import sql
from wayline.store.connecting import connect_or_explain

INSTALLED: Final = Path("/usr/lib/postgresql")
TLS: Final = frozenset({"require", "verify-ca", "verify-full"})
SAID_MAX_CHARS: Final = 2_000
"""Of what a program says when it fails."""
KNOWS_NEWER_DUMPS: Final = 17
"""The first version of a server that knows every setting that a newer `pg_restore` begins with."""
IN_ENVIRONMENT: Final = frozenset({"password", "options"})
"""Parameters of an address that the programs get by their environment."""
EVERY_TENANT: Final = "-c wayline.tenant=*"
"""Forced row-level security binds an owner that is no superuser, too."""


class TablesMoment:
    """The moment as of which the tables are read: what is written after it is not in the backup."""

    def __init__(self, snapshot: str, major: int, database: str) -> None:
        self.snapshot = snapshot
        self.postgres_major = major
        self.database = database
        """Its server and its name: a restored copy elsewhere has another one."""


@asynccontextmanager
async def tables_moment(dsn: str, schemas: Sequence[str]) -> AsyncIterator[TablesMoment]:
    """Hold one moment of all tables, and the tables themselves, until they have been dumped."""
    # It does nothing while streams are read, which may take long.
    session = {"wayline.tenant": "*", "idle_in_transaction_session_timeout": "0"}
    conn: Any = await connect_or_explain(dsn, server_settings=session)
    try:
        async with conn.transaction(isolation="repeatable_read", readonly=True):
            snapshot = await conn.fetchval("SELECT pg_export_snapshot()")
            # A partition that is dropped meanwhile would end the dump.
            if names := await conn.fetchval(sql.table_names, list(schemas)):
                await conn.execute(f"LOCK TABLE {names} IN ACCESS SHARE MODE")
            database = await conn.fetchval(
                "SELECT format('%s/%s', system_identifier, current_database()) FROM pg_control_system()"
            )
            yield TablesMoment(snapshot, conn.get_server_version().major, database)
    finally:
        await conn.close()


async def dump_tables(dsn: str, moment: TablesMoment, schemas: Sequence[str], write: Write) -> int:
    """Write the schemas as of a moment, in the custom format of `pg_dump`, and return its version.

    Raises BackupFailed.
    """
    address, environment = _address(dsn)
    program, version = _program("pg_dump", dsn, moment.postgres_major)
    command = [
        *(str(program), "--format=custom", "--compress=gzip:1"),
        *(f"--snapshot={moment.snapshot}", "--no-owner", "--no-privileges", "--enable-row-security"),
        *(f"--schema={schema}" for schema in schemas),
        f"--dbname={address}",
    ]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE, env=environment)
    said = asyncio.create_task(_said(process))
    try:
        assert process.stdout is not None
        while chunk := await process.stdout.read(CHUNK_BYTES):
            await asyncio.to_thread(write, chunk)
        await _ended("pg_dump", process, await said)
        return version
    finally:
        await _end(process, said)


def require_restorable(dsn: str, version: int, server_major: int) -> Path:
    """Return the program that writes tables which `dump_tables` of that version wrote. Raises BackupFailed."""
    if server_major < KNOWS_NEWER_DUMPS <= version:
        raise BackupFailed(
            f"the tables were dumped by version {version} of Postgres and this server is {server_major}: restore them "
            f"into version {version} or newer."
        )
    program, _ = _program("pg_restore", dsn, max(version, server_major))
    return program


async def restore_tables(dsn: str, version: int, server_major: int, chunks: Iterable[bytes]) -> None:
    """Write what `dump_tables` of that version wrote, all of it or nothing. Raises BackupFailed."""
    program = require_restorable(dsn, version, server_major)
    address, environment = _address(dsn)
    command = [
        *(str(program), "--single-transaction", "--exit-on-error"),
        *("--no-owner", "--no-privileges", f"--dbname={address}"),
    ]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stderr=PIPE, env=environment)
    said = asyncio.create_task(_said(process))
    try:
        assert process.stdin is not None
        try:
            for chunk in chunks:
                process.stdin.write(chunk)
                await process.stdin.drain()
            process.stdin.close()
        except (BrokenPipeError, ConnectionResetError):
            # It has ended, and says why.
            pass
        await _ended("pg_restore", process, await said)
    finally:
        await _end(process, said)


def _program(name: str, dsn: str, at_least: int) -> tuple[Path, int]:
    """Return a program of Postgres, the oldest that is new enough, with its version: the wheel's, or the machine's own.

    A newer one than the server says things that this may not know. The wheel's speak no TLS. Raises BackupFailed.
    """
    wants_tls = parse_qs(urlsplit(dsn).query).get("sslmode", [""])[0] in TLS
    own = {int(path.parts[-3]): path for path in INSTALLED.glob(f"*/bin/{name}") if path.parts[-3].isdigit()}
    found = {**({} if wants_tls else postgres_clients(name)), **own}
    if enough := [version for version in found if version >= at_least]:
        return found[min(enough)], min(enough)
    if path := shutil.which(name):
        return Path(path), at_least
    raise BackupFailed(f"there is no {name} of version {at_least} or newer: install the client programs of Postgres.")


def _address(dsn: str) -> tuple[str, dict[str, str]]:
    """Return an address without its password, which other users could see, and the environment that has it.

    Its options go there too: those of an address would replace ours, and a dump for no tenant has no rows.
    """
    parts = urlsplit(dsn)
    who, at, hosts = parts.netloc.rpartition("@")
    user, _, password = who.partition(":")
    parameters = parse_qsl(parts.query, keep_blank_values=True)
    said = dict(parameters)
    environment = {**os.environ, "PGOPTIONS": f"{said.get('options', '')} {EVERY_TENANT}".strip()}
    if password := unquote(password) or said.get("password", ""):
        environment["PGPASSWORD"] = password
    query = urlencode([one for one in parameters if one[0] not in IN_ENVIRONMENT], quote_via=quote)
    return urlunsplit(parts._replace(netloc=f"{user}{at}{hosts}", query=query)), environment


async def _said(process: Process) -> str:
    """Return the end of what a program says of its errors."""
    assert process.stderr is not None
    said = b""
    while some := await process.stderr.read(CHUNK_BYTES):
        said = (said + some)[-SAID_MAX_CHARS:]
    return said.decode(errors="replace").strip()


async def _ended(name: str, process: Process, said: str) -> None:
    status = await process.wait()
    if status != 0:
        raise BackupFailed(f"{name} ended with status {status}: {said or 'it said nothing'}")


async def _end(process: Process, said: asyncio.Task[str]) -> None:
    """End a program that was left in its middle."""
    if process.returncode is None:
        process.kill()
        # Its end is not told before its pipes are read to theirs.
        if process.stdout is not None:
            await process.stdout.read()
        await process.wait()
    said.cancel()
