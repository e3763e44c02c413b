"""The database: reachable, new enough, pgvector, every migration and function applied, every table guarded."""

from __future__ import annotations

from typing import Any

import asyncpg

from wayline.standalone.doctor.finding import Finding, Findings, note, ok, problem
from wayline.standalone.errors import NoServers
from wayline.standalone.services import MEMBERS, Member
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import Installation
from wayline.standalone.setup.migrate import find_servers
from wayline.standalone.setup.migrations import sql
from wayline.store import rls_gaps
from wayline.store.connecting import POSTGRES_MAJOR_MIN
from wayline.store.migration_files import is_function_file, read_functions, read_migrations
from wayline.store.several_hosts import NONE_WRITES, NoPrimary, connect_once

MIGRATE = "run `wayline migrate`"


async def examine_database(settings: Settings, installation: Installation) -> Findings:
    """Examine the database as far as it can be reached."""
    if not settings.admin_dsn and installation.running() is None:
        yield note("database", "not running", "`wayline up` starts it")
        return
    try:
        access = find_servers(settings, installation)
        conn = await connect_once(access.admin_dsn)
    except NoServers as error:
        yield problem("database", str(error), "set WAYLINE_POSTGRES_DSN")
        return
    except NoPrimary:
        yield problem("database", f"Postgres: {NONE_WRITES}", "promote the standby: what waits goes on by itself")
        return
    except (OSError, TimeoutError, asyncpg.PostgresError) as error:
        text = f"Postgres does not answer: {str(error) or type(error).__name__}"
        yield problem("database", text, "check that it runs and that WAYLINE_POSTGRES_DSN is right")
        return
    try:
        yield _version(conn)
        yield await _vector(conn)
        yield await _word_index(conn)
        yield await _connections(conn)
        for member in MEMBERS:
            if member.schema:
                yield await _migrations(conn, member)
        for gap in await rls_gaps(conn):
            yield problem("tenants", f"table {gap} has no policy that keeps tenants apart", "correct its migration")
    finally:
        await conn.close()


def _version(conn: Any) -> Finding:
    version = conn.get_server_version()
    if version.major < POSTGRES_MAJOR_MIN:
        return problem(
            "database", f"Postgres {version.major} is too old", f"Wayline needs {POSTGRES_MAJOR_MIN} or newer"
        )
    return ok("database", f"Postgres {version.major}.{version.minor} answers")


async def _vector(conn: Any) -> Finding:
    version = await conn.fetchval(sql.vector_version)
    if version is None:
        return problem("pgvector", "the extension `vector` is not in the database", f"install pgvector, then {MIGRATE}")
    return ok("pgvector", f"version {version}")


async def _word_index(conn: Any) -> Finding:
    """Find whether row-level security lets keyword searches use their index: a restored database has forgotten it."""
    if await conn.fetchval(sql.word_index_is_used):
        return ok("keyword search", "may use the index of words")
    return problem("keyword search", "scans all passages of a tenant", f"{MIGRATE} as a superuser")


async def _connections(conn: Any) -> Finding:
    """Find whether one process of each service, with all the connections that it may open, has room in Postgres."""
    sizes = [size for member in MEMBERS if (size := member.pool_size())]
    wanted, room = sum(sizes), await conn.fetchval(sql.room_for_connections)
    text = f"one process of each service may open {wanted}, the server takes {room}"
    if wanted > room:
        return problem("connections", text, "raise max_connections, lower the settings POOL_SIZE, or use a pooler")
    return ok("connections", f"{text}: {room // wanted} of each at most")


async def _migrations(conn: Any, member: Member) -> Finding:
    about, schema = f"schema {member.schema}", str(member.schema)
    if not await conn.fetchval(sql.applied, schema):
        return problem(about, "was never migrated", MIGRATE)
    rows = await conn.fetch(await conn.fetchval(sql.applied_statement, schema))
    serves = {row["version"] for row in rows if row["older_may_run"]}
    rows = {row["version"]: row["checksum"] for row in rows}
    applied = {version: checksum for version, checksum in rows.items() if not is_function_file(version)}
    known = {migration.version: migration for migration in read_migrations(member.migrations())}
    if unknown := sorted(applied.keys() - known.keys()):
        text = f"has migrations {', '.join(unknown)} of a newer Wayline"
        if serves.issuperset(unknown):
            return note(about, f"{text}, whose tables serve this one too", "upgrade Wayline when you want")
        return problem(about, text, "upgrade Wayline")
    if edited := [known[version].file for version, checksum in applied.items() if known[version].checksum != checksum]:
        return problem(about, f"{', '.join(edited)} was edited after it was applied", "restore the file")
    pending = [migration.file for version, migration in known.items() if version not in applied]
    pending += [file.file for file in read_functions(member.migrations()) if rows.get(file.version) != file.checksum]
    if pending:
        return problem(about, f"{', '.join(pending)} not applied", MIGRATE)
    return ok(about, f"{len(applied)} migration{'s' if len(applied) != 1 else ''} applied")
