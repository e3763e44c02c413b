"""Databases for tests: cloned from a template in the time a test may take, dropped afterwards."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import asyncpg

from wayline.embedded import PostgresServer
from wayline.store import migrate

TEMPLATE = "wayline_template"
WITH_TABLES = "wayline_with_tables"
SCHEMAS = {
    "router": "router",
    "tool_registry": "tools",
    "retrieval": "retrieval",
    "tracing": "tracing",
    "notifier": "notifier",
    "gateway": "gateway",
}
"""The services that have tables, and their schemas."""
SPANS_DAYS = 7
"""For which tracing has partitions by default."""
PASSWORD = "test"
PLAIN = "sslmode=disable"
"""To look for certificates and ask for encryption first is a third of what a connection costs, and a test has ten."""


@dataclass(frozen=True)
class Database:
    """A fresh database of a running server."""

    name: str
    server: PostgresServer
    tables: bool = False
    """Whether the tables of every service are in it."""

    @property
    def dsn(self) -> str:
        """Return its address for the superuser, who migrates."""
        return plain(self.server.dsn(database=self.name))

    def as_role(self, role: str, password: str) -> str:
        """Return its address for a service's own role."""
        return plain(self.server.dsn(database=self.name, user=role, password=password))


async def make_template(server: PostgresServer) -> None:
    """Make the database that all others are cloned from: pgvector is in it."""
    await run_sql(server.dsn(), f"CREATE DATABASE {TEMPLATE}")
    await run_sql(server.dsn(database=TEMPLATE), "CREATE EXTENSION vector WITH SCHEMA public")


async def clone(server: PostgresServer) -> Database:
    """Clone a new database that has no tables."""
    name = f"t_{secrets.token_hex(6)}"
    await run_sql(server.dsn(), _cloning(name, TEMPLATE))
    return Database(name, server)


async def make_tables(server: PostgresServer) -> None:
    """Make the database with the tables of every service."""
    await run_sql(server.dsn(), _cloning(WITH_TABLES, TEMPLATE))
    for service in SCHEMAS:
        await migrate_service(Database(WITH_TABLES, server), service)
    # What tracing makes at its start, for 100 ms; the connection leaves a file with what the next ones read.
    await run_sql(Database(WITH_TABLES, server).dsn, f"SELECT tracing.keep_spans({SPANS_DAYS})")


async def clone_with_tables(server: PostgresServer) -> Database:
    """Clone a new database with the tables of every service."""
    name = f"t_{secrets.token_hex(6)}"
    async with _connected(server.dsn()) as conn:
        if not await conn.fetchval("SELECT count(*) FROM pg_database WHERE datname = $1", WITH_TABLES):
            await make_tables(server)
        await conn.execute(_cloning(name, WITH_TABLES))
        # Roles belong to the server: another test may have given them other passwords.
        await conn.execute(
            "".join(f"ALTER ROLE {role_of(service)} LOGIN PASSWORD '{PASSWORD}';" for service in SCHEMAS)
        )
    return Database(name, server, tables=True)


def _cloning(name: str, template: str) -> str:
    # Copying files costs a third of writing each page into the log.
    return f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy"


async def drop(database: Database) -> None:
    """Drop the database, and the connections that a test forgot."""
    await run_sql(database.server.dsn(), f"DROP DATABASE IF EXISTS {database.name} WITH (FORCE)")


def role_of(service: str) -> str:
    """Return the role as which a service connects."""
    return f"wayline_{service}"


async def migrate_service(database: Database, name: str) -> str:
    """Make a service's tables where they are not there yet, and return the address of the database for its role."""
    if not database.tables:
        await migrate(
            database.dsn,
            schema=SCHEMAS[name],
            role=role_of(name),
            password=PASSWORD,
            # Without importing the service.
            directory=Path(str(files(f"wayline.{name}") / "migrations")),
            vector=name == "retrieval",
        )
    return database.as_role(role_of(name), PASSWORD)


def plain(dsn: str) -> str:
    """Return an address that asks for no encryption."""
    return dsn if PLAIN in dsn else f"{dsn}{'&' if '?' in dsn else '?'}{PLAIN}"


async def run_sql(dsn: str, sql: str) -> None:
    """Run one script on a connection of its own."""
    async with _connected(dsn) as conn:
        await conn.execute(sql)


@asynccontextmanager
async def _connected(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    conn = await asyncpg.connect(plain(dsn))
    try:
        yield conn
    finally:
        await conn.close()
