"""Databases for tests: cloned from a template in the time a test may take, dropped afterwards."""

import secrets
from dataclasses import dataclass
from importlib import import_module

import asyncpg

from wayline.embedded import PostgresServer
from wayline.store import migrate

TEMPLATE = "wayline_template"
SCHEMAS = {
    "router": "router",
    "tool_registry": "tools",
    "retrieval": "retrieval",
    "tracing": "tracing",
    "gateway": "gateway",
}
"""The services that have tables, and their schemas."""
PASSWORD = "test"


@dataclass(frozen=True)
class Database:
    """A fresh database of a running server."""

    name: str
    server: PostgresServer

    @property
    def dsn(self) -> str:
        """Return its address for the superuser, who migrates."""
        return self.server.dsn(database=self.name)

    def as_role(self, role: str, password: str) -> str:
        """Return its address for a service's own role."""
        return self.server.dsn(database=self.name, user=role, password=password)


async def make_template(server: PostgresServer) -> None:
    """Make the database that all others are cloned from: pgvector is in it."""
    await run_sql(server.dsn(), f"CREATE DATABASE {TEMPLATE}")
    await run_sql(server.dsn(database=TEMPLATE), "CREATE EXTENSION vector WITH SCHEMA public")


async def clone(server: PostgresServer) -> Database:
    """Clone a new database from the template."""
    name = f"t_{secrets.token_hex(6)}"
    await run_sql(server.dsn(), f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
    return Database(name=name, server=server)


async def drop(database: Database) -> None:
    """Drop the database, and the connections that a test forgot."""
    await run_sql(database.server.dsn(), f"DROP DATABASE IF EXISTS {database.name} WITH (FORCE)")


async def migrate_service(database: Database, name: str) -> str:
    """Make a service's tables, and return the address of the database for its role."""
    role = f"wayline_{name}"
    await migrate(
        database.dsn,
        schema=SCHEMAS[name],
        role=role,
        password=PASSWORD,
        directory=import_module(f"wayline.{name}.app").migrations(),
        vector=name == "retrieval",
    )
    return database.as_role(role, PASSWORD)


async def run_sql(dsn: str, sql: str) -> None:
    """Run one script on a connection of its own."""
    conn = await asyncpg.connect(dsn)
    try:
        await conn.execute(sql)
    finally:
        await conn.close()
