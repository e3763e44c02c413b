"""Schemas move forward one file at a time, once, with the least rights for the service."""

import asyncio
from pathlib import Path

import asyncpg
import pytest

from wayline.store import (
    MigrationChanged,
    MigrationFailed,
    MigrationInvalid,
    MigrationOutOfOrder,
    MigrationUnknown,
    PostgresRefused,
    PostgresTooOld,
    RoleTooPowerful,
    VectorMissing,
    connecting,
    migrate,
    migrating,
    rls_gaps,
)
from wayline.testkit import Database

GUARD = """
ALTER TABLE {0} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {0} FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON {0} USING (tenant = current_setting('wayline.tenant', true));
"""


def write(directory: Path, file: str, up: str) -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / file
    path.write_text(f"-- migrate:up\n{up}\n-- migrate:down\n")
    return path


async def apply(database: Database, directory: Path, *, schema: str = "notes", vector: bool = False) -> list[str]:
    return await migrate(
        database.dsn,
        schema=schema,
        role=f"{schema}_service",
        password="secret",
        directory=directory,
        vector=vector,
    )


async def ask(dsn: str, sql: str) -> object:
    conn = await asyncpg.connect(dsn)
    try:
        return await conn.fetchval(sql)
    finally:
        await conn.close()


async def test_each_file_is_applied_once_in_the_order_of_its_number(database: Database, tmp_path: Path):
    write(tmp_path, "0002_more.sql", "ALTER TABLE notes ADD COLUMN more text;")
    write(tmp_path, "0001_notes.sql", "CREATE TABLE notes (id text);")

    assert await apply(database, tmp_path) == ["0001_notes.sql", "0002_more.sql"]
    write(tmp_path, "0003_most.sql", "ALTER TABLE notes ADD COLUMN most text;")
    assert await apply(database, tmp_path) == ["0003_most.sql"]
    assert await apply(database, tmp_path) == []


async def test_two_migrators_at_once_apply_everything_once(database: Database, tmp_path: Path):
    write(tmp_path, "0001_notes.sql", "SELECT pg_sleep(0.05); CREATE TABLE notes (id text);")
    write(tmp_path, "0002_row.sql", "INSERT INTO notes VALUES ('once');")

    applied = await asyncio.gather(*(apply(database, tmp_path, vector=True) for _ in range(4)))

    assert sorted(applied) == [[], [], [], ["0001_notes.sql", "0002_row.sql"]]
    assert await ask(database.dsn, "SELECT count(*) FROM notes.notes") == 1


async def test_an_edited_migration_is_refused(database: Database, tmp_path: Path):
    write(tmp_path, "0001_notes.sql", "CREATE TABLE notes (id text);")
    await apply(database, tmp_path)
    write(tmp_path, "0001_notes.sql", "CREATE TABLE notes (id uuid);")

    with pytest.raises(MigrationChanged, match=r"0001_notes.sql was applied to schema 'notes' and has been edited"):
        await apply(database, tmp_path)


async def test_an_older_version_goes_on_with_tables_that_serve_it(database: Database, tmp_path: Path):
    write(tmp_path, "0001_notes.sql", "CREATE TABLE notes (id text);")
    newer = write(tmp_path, "0002_more.sql", "ALTER TABLE notes ADD COLUMN more text;")
    await apply(database, tmp_path)
    newer.rename(tmp_path / "later")

    assert await apply(database, tmp_path) == []
    (tmp_path / "later").rename(newer)
    assert await apply(database, tmp_path) == []


async def test_a_database_that_takes_away_what_the_code_needs_is_refused(database: Database, tmp_path: Path):
    write(tmp_path, "0001_notes.sql", "CREATE TABLE notes (id text);")
    newer = tmp_path / "0002_less.sql"
    newer.write_text("-- migrate:up older:refused\nALTER TABLE notes DROP COLUMN id;\n-- migrate:down\n")
    await apply(database, tmp_path)
    newer.unlink()

    with pytest.raises(MigrationUnknown, match=r"already has 0002_less.sql"):
        await apply(database, tmp_path)


async def test_a_migration_of_a_version_that_did_not_say_is_refused(database: Database, tmp_path: Path):
    write(tmp_path, "0001_notes.sql", "CREATE TABLE notes (id text);")
    newer = write(tmp_path, "0002_more.sql", "ALTER TABLE notes ADD COLUMN more text;")
    await apply(database, tmp_path)
    await ask(database.dsn, "ALTER TABLE notes.applied_migrations DROP COLUMN older_may_run")
    newer.unlink()

    with pytest.raises(MigrationUnknown, match=r"already has 0002_more.sql"):
        await apply(database, tmp_path)


async def test_a_new_file_below_an_applied_number_is_refused(database: Database, tmp_path: Path):
    write(tmp_path, "0002_notes.sql", "CREATE TABLE notes (id text);")
    await apply(database, tmp_path)
    write(tmp_path, "0001_late.sql", "CREATE TABLE late (id text);")

    with pytest.raises(MigrationOutOfOrder, match=r"0001_late.sql is new, but 0002_notes.sql is applied"):
        await apply(database, tmp_path)


async def test_a_failing_file_is_named_with_its_line_and_leaves_nothing(database: Database, tmp_path: Path):
    write(tmp_path, "0001_notes.sql", "CREATE TABLE notes (id text);")
    write(tmp_path, "0002_wrong.sql", "CREATE TABLE half (id text);\nALTER TABLE notes ADD COLUMN other no_type;")

    with pytest.raises(MigrationFailed, match=r'0002_wrong.sql:3: type "no_type" does not exist'):
        await apply(database, tmp_path)

    assert await ask(database.dsn, "SELECT to_regclass('notes.half')") is None
    assert await ask(database.dsn, "SELECT max(version) FROM notes.applied_migrations") == "0001"


async def test_a_service_may_only_read_and_write_its_rows(database: Database, tmp_path: Path):
    for schema in ("notes", "other"):
        write(tmp_path / schema, "0001_rows.sql", "CREATE TABLE rows (id serial PRIMARY KEY, body text);")
        await apply(database, tmp_path / schema, schema=schema)
    dsn = database.as_role("notes_service", "secret")

    assert await ask(dsn, "INSERT INTO notes.rows (body) VALUES ('mine') RETURNING id") == 1
    assert await ask(dsn, "UPDATE notes.rows SET body = 'still mine' RETURNING body") == "still mine"
    for forbidden in (
        "SELECT * FROM other.rows",
        "INSERT INTO other.rows (body) VALUES ('theirs')",
        "SELECT * FROM notes.applied_migrations",
        "TRUNCATE notes.rows",
        "ALTER TABLE notes.rows DISABLE ROW LEVEL SECURITY",
        "DROP TABLE notes.rows",
        "CREATE TABLE notes.mine (id int)",
        "CREATE TABLE public.mine (id int)",
        "CREATE SCHEMA mine",
        "CREATE ROLE mine",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await ask(dsn, forbidden)


async def test_the_role_cannot_bypass_row_level_security(database: Database, tmp_path: Path):
    write(tmp_path, "0001_notes.sql", "CREATE TABLE notes (id text);")
    await apply(database, tmp_path)

    powers = (
        "SELECT rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb FROM pg_roles WHERE rolname = 'notes_service'"
    )
    assert await ask(database.dsn, powers) is False


async def test_the_server_gives_up_a_service_that_was_cut_off_soon(database: Database, tmp_path: Path):
    write(tmp_path, "0001_notes.sql", "CREATE TABLE notes (id text);")
    await apply(database, tmp_path)

    soon = "SELECT setconfig FROM pg_db_role_setting WHERE setrole = 'notes_service'::regrole"
    assert set(await ask(database.dsn, soon)) >= {f"{name}={value}" for name, value in migrating.DEAD_CLIENTS.items()}


async def test_a_role_that_could_bypass_row_level_security_is_refused(database: Database, tmp_path: Path):
    write(tmp_path, "0001_notes.sql", "CREATE TABLE notes (id text);")
    await ask(database.dsn, "CREATE ROLE mighty_service LOGIN BYPASSRLS")

    with pytest.raises(RoleTooPowerful, match="'mighty_service'"):
        await apply(database, tmp_path, schema="mighty")


async def test_a_new_password_replaces_the_old_one(database: Database, tmp_path: Path):
    write(tmp_path, "0001_notes.sql", "CREATE TABLE notes (id text);")
    for password in ("first", "it's \\ second"):
        await migrate(database.dsn, schema="renew", role="renew_service", password=password, directory=tmp_path)

    assert await ask(database.as_role("renew_service", "it's \\ second"), "SELECT 1") == 1
    with pytest.raises(asyncpg.InvalidPasswordError):
        await ask(database.as_role("renew_service", "first"), "SELECT 1")


async def test_every_unguarded_tenant_table_is_found(database: Database, tmp_path: Path):
    tables = ("bare", "unforced", "without_policy", "open_policy", "guarded")
    create = "".join(f"CREATE TABLE {table} (tenant text);" for table in tables)
    guards = "".join(GUARD.format(table) for table in tables[1:])
    breaks = """
        ALTER TABLE unforced NO FORCE ROW LEVEL SECURITY;
        DROP POLICY tenant ON without_policy;
        CREATE POLICY everybody ON open_policy USING (true);
        CREATE TABLE shared (id text);
    """
    write(tmp_path, "0001_tables.sql", create + guards + breaks)
    await apply(database, tmp_path)

    conn = await asyncpg.connect(database.dsn)
    found = await rls_gaps(conn)
    await conn.close()

    assert found == [
        "notes.bare: row-level security is not enabled",
        "notes.open_policy: a policy does not look at wayline.tenant",
        "notes.unforced: row-level security is not forced on the owner",
        "notes.without_policy: there is no policy",
    ]


async def test_vectors_are_there_when_asked_for(database: Database, tmp_path: Path):
    write(tmp_path, "0001_notes.sql", "CREATE TABLE notes (embedding vector(3));")

    assert await apply(database, tmp_path, vector=True) == ["0001_notes.sql"]


async def test_an_old_server_or_one_without_pgvector_is_refused_plainly(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write(tmp_path, "0001_notes.sql", "CREATE TABLE notes (id text);")

    monkeypatch.setattr(migrating, "VECTOR", "vector_of_tomorrow")
    with pytest.raises(VectorMissing, match="install pgvector"):
        await apply(database, tmp_path, vector=True)
    monkeypatch.setattr(connecting, "POSTGRES_MAJOR_MIN", 99)
    with pytest.raises(PostgresTooOld, match=r"version 18\.\d+; Wayline needs 99"):
        await apply(database, tmp_path)


async def test_a_wrong_admin_password_is_said_without_showing_it(database: Database, tmp_path: Path):
    write(tmp_path, "0001_notes.sql", "CREATE TABLE notes (id text);")

    with pytest.raises(PostgresRefused) as refused:
        await migrate(
            database.as_role("postgres", "hunter2"), schema="n", role="n_service", password="p", directory=tmp_path
        )

    assert "hunter2" not in str(refused.value)


async def test_a_directory_without_migrations_is_refused(database: Database, tmp_path: Path):
    with pytest.raises(MigrationInvalid, match="no migration in this directory"):
        await apply(database, tmp_path)
