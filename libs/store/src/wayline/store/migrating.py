"""Bring one service's schema up to date: its role, its grants, its tables."""

from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import asyncpg

from wayline.store.catalogue import PROBE_TABLE
from wayline.store.connecting import connect_admin
from wayline.store.errors import (
    MigrationChanged,
    MigrationFailed,
    MigrationOutOfOrder,
    MigrationUnknown,
    RoleTooPowerful,
    VectorMissing,
)
from wayline.store.migration_files import Migration, read_migrations

# One lock a database: two services' migrations create the same extension.
LOCK_KEY = 0x7761796C696E65
APPLIED_TABLE = "applied_migrations"
VECTOR = "vector"


async def migrate(
    admin_dsn: str,
    *,
    schema: str,
    role: str,
    password: str,
    directory: Path | Traversable,
    vector: bool = False,
) -> list[str]:
    """Create the schema and the service's role, and apply the files that are new; the answer names them."""
    migrations = read_migrations(directory)
    conn = await connect_admin(admin_dsn)
    try:
        await conn.execute("SELECT pg_advisory_lock($1)", LOCK_KEY)
        if vector:
            await _create_vector(conn)
        await _create_role(conn, role=role, password=password)
        await _create_schema(conn, schema=schema, role=role)
        pending = _pending(migrations, await _applied(conn, schema), schema=schema)
        for migration in pending:
            await _apply(conn, migration, schema=schema, role=role)
        return [migration.file for migration in pending]
    finally:
        # Ends the session, and the lock with it.
        await conn.close()


def _pending(migrations: list[Migration], applied: dict[str, tuple[str, str]], *, schema: str) -> list[Migration]:
    """The migrations still to apply, after checking that history is as it was."""
    known = {migration.version: migration for migration in migrations}
    for version, (file, checksum) in applied.items():
        if version not in known:
            raise MigrationUnknown(file=file, schema=schema)
        if known[version].checksum != checksum:
            raise MigrationChanged(file=known[version].file, schema=schema)
    latest = max(applied, default="")
    pending = [migration for migration in migrations if migration.version not in applied]
    if pending and pending[0].version < latest:
        raise MigrationOutOfOrder(file=pending[0].file, latest=applied[latest][0])
    return pending


async def _applied(conn: Any, schema: str) -> dict[str, tuple[str, str]]:
    rows = await conn.fetch(f"SELECT version, file, checksum FROM {_quote(schema)}.{APPLIED_TABLE} ORDER BY version")
    return {row["version"]: (row["file"], row["checksum"]) for row in rows}


async def _apply(conn: Any, migration: Migration, *, schema: str, role: str) -> None:
    try:
        async with conn.transaction():
            # Forced row-level security binds an owner that is no superuser too: migrations act for all tenants.
            await conn.execute(
                f"SET LOCAL search_path TO {_quote(schema)}, public; SELECT set_config('wayline.tenant', '*', true)"
            )
            await conn.execute(migration.up)
            await _close_functions(conn, schema=schema, role=role)
            await conn.execute(
                f"INSERT INTO {_quote(schema)}.{APPLIED_TABLE} (version, file, checksum) VALUES ($1, $2, $3)",
                migration.version,
                migration.file,
                migration.checksum,
            )
    except asyncpg.PostgresError as error:
        raise MigrationFailed(file=migration.file, line=_line(error, migration), cause=str(error)) from error


async def _close_functions(conn: Any, *, schema: str, role: str) -> None:
    """Leave functions to the service alone.

    Postgres lets everybody call a new function, also one that runs with its owner's rights.
    """
    name, grantee = _quote(schema), _quote(role)
    await conn.execute(f"""
        REVOKE EXECUTE ON ALL ROUTINES IN SCHEMA {name} FROM PUBLIC;
        GRANT EXECUTE ON ALL ROUTINES IN SCHEMA {name} TO {grantee};
    """)


def _line(error: asyncpg.PostgresError, migration: Migration) -> int | None:
    """The line of the file that Postgres objects to, when it says where."""
    position = getattr(error, "position", None)
    if not position:
        return None
    return migration.up_starts_at_line + migration.up.count("\n", 0, int(position) - 1)


async def _create_vector(conn: Any) -> None:
    if not await conn.fetchval("SELECT count(*) FROM pg_available_extensions WHERE name = $1", VECTOR):
        raise VectorMissing
    await conn.execute(f"CREATE EXTENSION IF NOT EXISTS {VECTOR} WITH SCHEMA public")


async def _create_role(conn: Any, *, role: str, password: str) -> None:
    """A role that may log in and nothing else; its attributes are Postgres's defaults, checked, not trusted."""
    # CREATE ROLE takes no parameters, so Postgres itself quotes the words.
    found = await conn.fetchrow("SELECT rolsuper OR rolbypassrls AS powerful FROM pg_roles WHERE rolname = $1", role)
    if found and found["powerful"]:
        raise RoleTooPowerful(role=role)
    statement = await conn.fetchval(
        f"SELECT format('{'ALTER' if found else 'CREATE'} ROLE %I LOGIN PASSWORD %L', $1::text, $2::text)",
        role,
        password,
    )
    await conn.execute(statement)


async def _create_schema(conn: Any, *, schema: str, role: str) -> None:
    """The schema and what the role may do in it: read and write rows, nothing more, and nothing elsewhere."""
    name, grantee = _quote(schema), _quote(role)
    async with conn.transaction():
        await conn.execute(f"""
            CREATE SCHEMA IF NOT EXISTS {name};
            CREATE TABLE IF NOT EXISTS {name}.{APPLIED_TABLE} (
                version text PRIMARY KEY,
                file text NOT NULL,
                checksum text NOT NULL,
                applied_at timestamptz NOT NULL DEFAULT now()
            );
            CREATE TABLE IF NOT EXISTS {name}.{PROBE_TABLE} (
                one boolean PRIMARY KEY DEFAULT true CHECK (one),
                written_at timestamptz NOT NULL
            );
            GRANT USAGE ON SCHEMA {name} TO {grantee};
            ALTER DEFAULT PRIVILEGES IN SCHEMA {name} GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {grantee};
            ALTER DEFAULT PRIVILEGES IN SCHEMA {name} GRANT USAGE, SELECT ON SEQUENCES TO {grantee};
            GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {name} TO {grantee};
            GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {name} TO {grantee};
            REVOKE ALL ON {name}.{APPLIED_TABLE} FROM {grantee};
        """)
        # A probe asks the disk for a page of its own.
        database = await conn.fetchval("SELECT quote_ident(current_database())")
        await conn.execute(f"GRANT TEMPORARY ON DATABASE {database} TO {grantee}")
        # Also those that an earlier version has left open.
        await _close_functions(conn, schema=schema, role=role)


def _quote(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'
