"""Which migrations this version would apply, and what they would hold up."""

from __future__ import annotations

import re
from typing import Any, Final

from wayline.standalone.services import MEMBERS, Member
from wayline.standalone.setup.installation import ServerAccess
from wayline.standalone.setup.migrations import sql
from wayline.standalone.upgrade.upgrade_step import UpgradeStep, UpgradeSteps
from wayline.store.connecting import connect_or_explain
from wayline.store.lock_retries import LOCK_TIMEOUT_MS
from wayline.store.migration_files import SqlFile, is_function_file, read_functions, read_migrations

MIGRATE: Final = "`wayline migrate`, while the services work"
_LOCKED: Final = re.compile(
    r"^\s*(?:ALTER TABLE (?:IF EXISTS )?(?:ONLY )?|CREATE (?:UNIQUE )?INDEX \w+ ON )(\w+)", re.M
)
_CREATED: Final = re.compile(r"^\s*CREATE TABLE (?:IF NOT EXISTS )?(\w+)", re.M)


async def check_database(access: ServerAccess) -> UpgradeSteps:
    """Yield what the database lacks, and what of it this version does not know."""
    conn: Any = await connect_or_explain(access.admin_dsn)
    try:
        for member in MEMBERS:
            if member.schema:
                async for step in _check_schema(conn, member):
                    yield step
    finally:
        await conn.close()


async def _check_schema(conn: Any, member: Member) -> UpgradeSteps:
    applied: dict[str, str] = {}
    serving: set[str] = set()
    if await conn.fetchval(sql.applied, member.schema):
        rows = await conn.fetch(await conn.fetchval(sql.applied_statement, member.schema))
        applied = {row["version"]: row["checksum"] for row in rows}
        serving = {row["version"] for row in rows if row["older_may_run"]}
    migrations = read_migrations(member.migrations())
    known = {migration.version for migration in migrations}
    if newer := sorted(version for version in applied if not is_function_file(version) and version not in known):
        text = f"schema {member.schema} has {', '.join(newer)} of a newer version"
        if serving.issuperset(newer):
            yield UpgradeStep("note", text, "its tables serve this version too")
        else:
            yield UpgradeStep("blocked", text, "upgrade to that version: `wayline migrate` of this one refuses")
    for migration in migrations:
        if migration.version not in applied:
            yield UpgradeStep("migrate", f"schema {member.schema}: {migration.file} ({held_up(migration)})", MIGRATE)
        elif applied[migration.version] != migration.checksum:
            todo = "restore the file: what is applied is never edited"
            yield UpgradeStep(
                "blocked", f"schema {member.schema}: {migration.file} was edited after it was applied", todo
            )
    changed = [one.file for one in read_functions(member.migrations()) if applied.get(one.version) != one.checksum]
    if changed:
        yield UpgradeStep("migrate", f"schema {member.schema}: {', '.join(changed)} (locks no table)", MIGRATE)


def held_up(migration: SqlFile) -> str:
    """Return in words what a migration locks while it runs."""
    if migration.indexes:
        return "makes indexes beside the services' work"
    locked = set(_LOCKED.findall(migration.statements)) - set(_CREATED.findall(migration.statements))
    if not locked:
        return "locks no table"
    return f"locks {', '.join(sorted(locked))}; asks for it {LOCK_TIMEOUT_MS} ms at a time"
