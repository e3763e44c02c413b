"""Migrations of this version run beside the services of the version before, hold up nobody, and are never edited."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from wayline.standalone.services import MEMBERS
from wayline.store.migration_files import SqlFile, parse_migration, read_migrations

RELEASES = Path(__file__).parents[1] / "releases"
"""The files `migrations.txt` in it have the checksum, the schema and the name of every migration of a release."""
OWN = "-- migrate:up\nCREATE TABLE own (id text);\n{}\n-- migrate:down\n"


def released() -> dict[tuple[str, str], str]:
    lines = [line.split() for file in RELEASES.glob("*/migrations.txt") for line in file.read_text().splitlines()]
    return {(schema, file): checksum for checksum, schema, file in lines}


def present() -> Iterator[tuple[str, SqlFile]]:
    for member in MEMBERS:
        if member.schema:
            for file in read_migrations(member.migrations()):
                yield member.schema, file


def problems(migration: SqlFile) -> list[str]:
    """Return what of a new migration would hold up services, or break those of the version before."""
    text = re.sub(r"--[^\n]*|\$\$.*?\$\$", " ", migration.statements, flags=re.DOTALL)
    statements = [" ".join(part.split()) for part in text.split(";") if part.strip()]
    made = {found[1] for one in statements if (found := re.match(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)", one))}
    found = [problem for one in statements for problem in _of_statement(one, made)]
    if not migration.older_may_run:
        found = [problem for problem in found if not problem.endswith(LATER)]
    altered = [one for one in statements if re.match(r"ALTER TABLE", one) and _table(one) not in made]
    filled = [one for one in statements if re.match(r"UPDATE|DELETE|INSERT INTO \w+ .*SELECT", one)]
    if altered and [one for one in filled if _table(one) not in made]:
        found.append("fills rows while it locks a table: put the rows into a migration of their own")
    return found


LATER = "one release after nothing uses it any more, in a migration that says `older:refused`"


def _table(statement: str) -> str:
    found = re.match(
        r"(?:ALTER TABLE (?:IF EXISTS )?(?:ONLY )?|UPDATE (?:ONLY )?|DELETE FROM |INSERT INTO )(\w+)", statement
    )
    return found[1] if found else ""


def _of_statement(statement: str, made: set[str]) -> Iterator[str]:
    index = re.match(r"CREATE (?:UNIQUE )?INDEX (CONCURRENTLY )?(?:IF NOT EXISTS )?\w+ ON (?:ONLY )?(\w+)", statement)
    if index and not index[1] and index[2] not in made:
        yield f"indexes {index[2]}, which exists: CREATE INDEX CONCURRENTLY, in a file with `transaction:false`"
    if re.match(r"DROP (TABLE|TYPE|FUNCTION|SCHEMA)", statement):
        yield f"{statement}: {LATER}"
    if _table(statement) in made or not statement.startswith("ALTER"):
        return
    for change in re.split(r",(?![^(]*\))", statement):
        if re.search(r"\bDROP (COLUMN|DEFAULT)\b", change):
            yield f"{change.strip()}: {LATER}"
        if re.search(r"\bRENAME\b|\bSET NOT NULL\b|\bTYPE \w", change):
            yield f"{change.strip()}: {LATER}"
        if re.search(r"\bADD COLUMN\b.*\bNOT NULL\b", change) and "DEFAULT" not in change:
            yield f"{change.strip()}: a new column has a default, or may be null"
        if re.search(r"\bADD (CONSTRAINT \w+ )?(CHECK|FOREIGN KEY)\b", change) and "NOT VALID" not in statement:
            yield f"{change.strip()}: NOT VALID, and VALIDATE CONSTRAINT in a migration of its own"
        if re.search(r"\bADD (CONSTRAINT \w+ )?(UNIQUE|PRIMARY KEY)\b", change) and "USING INDEX" not in change:
            yield f"{change.strip()}: a unique index made concurrently first, then USING INDEX"


def test_no_released_migration_was_edited_or_taken_away():
    here = {(schema, file.file): file.checksum for schema, file in present()}

    assert {key: here.get(key) for key in released()} == released()


def test_no_new_migration_holds_up_services_or_breaks_older_ones():
    new = [(schema, file) for schema, file in present() if (schema, file.file) not in released()]
    found = {f"{schema}/{file.file}": problems(file) for schema, file in new}

    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    ("up", "problem"),
    [
        ("CREATE INDEX jobs_by_x ON jobs (x);", "indexes jobs, which exists"),
        ("CREATE UNIQUE INDEX jobs_by_x\n    ON jobs (x);", "indexes jobs, which exists"),
        ("ALTER TABLE jobs DROP COLUMN x;", "one release after"),
        ("ALTER TABLE jobs ADD COLUMN a text, RENAME COLUMN b TO c;", "one release after"),
        ("ALTER TABLE jobs ALTER COLUMN a SET NOT NULL;", "one release after"),
        ("ALTER TABLE jobs ALTER COLUMN a TYPE bigint;", "one release after"),
        ("DROP TABLE jobs;", "one release after"),
        ("ALTER TABLE jobs ADD COLUMN a text NOT NULL;", "a new column has a default"),
        ("ALTER TABLE jobs ADD CONSTRAINT a_is CHECK (a > 0);", "NOT VALID"),
        ("ALTER TABLE jobs ADD CONSTRAINT a_is UNIQUE (a);", "USING INDEX"),
        ("ALTER TABLE jobs ADD COLUMN a int NOT NULL DEFAULT 0;\nUPDATE jobs SET a = b;", "fills rows while it locks"),
    ],
)
def test_a_migration_that_would_hold_up_or_break_is_found(up: str, problem: str):
    found = problems(parse_migration("0001_a.sql", OWN.format(up)))

    assert len(found) == 1 and problem in found[0]


@pytest.mark.parametrize(
    "up",
    [
        "CREATE INDEX own_by_id ON own (id);",
        "ALTER TABLE own ADD CONSTRAINT id_is CHECK (id > '');",
        "ALTER TABLE jobs ADD COLUMN a int NOT NULL DEFAULT 0, ADD COLUMN b text;",
        "ALTER TABLE jobs ALTER COLUMN a DROP NOT NULL;",
        "ALTER TABLE jobs DROP CONSTRAINT a_is, ADD CONSTRAINT a_is CHECK (a IN (1, 2, 3)) NOT VALID;",
        "ALTER TABLE jobs ENABLE ROW LEVEL SECURITY;",
        "INSERT INTO own SELECT id FROM jobs; -- DROP TABLE jobs;",
        "UPDATE jobs SET a = b;",
        "CREATE TYPE job_row_9 AS (a text);",
    ],
)
def test_a_migration_that_adds_is_fine(up: str):
    assert problems(parse_migration("0001_a.sql", OWN.format(up))) == []


def test_what_is_taken_away_refuses_the_version_before():
    text = OWN.format("DROP TABLE unused;").replace("migrate:up", "migrate:up older:refused")

    assert problems(parse_migration("0001_a.sql", text)) == []
