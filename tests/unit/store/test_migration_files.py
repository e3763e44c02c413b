"""What is a migration or a function file, and what is said about a file that is neither."""

from pathlib import Path

import pytest

from wayline.store import MigrationInvalid
from wayline.store.migration_files import parse_functions, parse_migration, read_functions, read_migrations

GOOD = "-- Why.\n-- migrate:up\nCREATE TABLE a (id int);\n-- migrate:down\nDROP TABLE a;\n"
FUNCTION = "-- Why.\nCREATE OR REPLACE FUNCTION one() RETURNS int LANGUAGE sql RETURN 1;\n"


def test_only_the_part_between_up_and_down_is_applied():
    migration = parse_migration("0007_add_a.sql", GOOD)

    assert (migration.version, migration.statements.strip()) == ("0007", "CREATE TABLE a (id int);")


def test_the_line_endings_of_a_checkout_change_no_checksum():
    windows = GOOD.replace("\n", "\r\n")

    assert parse_migration("0001_a.sql", GOOD).checksum == parse_migration("0001_a.sql", windows).checksum
    assert (
        parse_functions("a.sql", FUNCTION).checksum == parse_functions("a.sql", FUNCTION.replace("\n", "\r\n")).checksum
    )


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("1_a.sql", GOOD, "named like 0001_create_chunks.sql"),
        ("0001_a.sql", "CREATE TABLE a (id int);", "needs a line `-- migrate:up`"),
        ("0001_a.sql", "-- migrate:down\n-- migrate:up\n", "needs a line `-- migrate:up`"),
        ("0001_a.sql", GOOD.replace("up\n", "up quickly\n"), "option 'quickly': there are 'transaction:false'"),
        ("0001_a.sql", GOOD.replace("up\n", "up transaction:false\n"), "0001_a.sql:3: outside of a transaction only"),
        ("0001_a.sql", "-- migrate:up transaction:false\n-- migrate:down\n", "has no statement"),
    ],
)
def test_a_file_that_is_no_migration_is_named(file: str, text: str, problem: str):
    with pytest.raises(MigrationInvalid, match=problem) as refused:
        parse_migration(file, text)

    assert str(refused.value).startswith(file)


def test_indexes_that_are_made_concurrently_are_read_with_their_lines():
    text = """-- migrate:up transaction:false
-- Why; in words.
CREATE UNIQUE INDEX CONCURRENTLY a_by_b ON a (
    b, (c ->> 'd')
) WHERE b IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS a_old; -- replaced
-- migrate:down
"""
    found = parse_migration("0002_a.sql", text).indexes

    assert [(one.index, one.table, one.line) for one in found] == [("a_by_b", "a", 3), ("a_old", None, 7)]
    assert found[0].text.startswith("CREATE UNIQUE INDEX CONCURRENTLY a_by_b ON a (")


def test_a_migration_says_whether_an_older_version_may_go_on():
    refusing = parse_migration("0001_a.sql", GOOD.replace("up\n", "up older:refused\n"))

    assert (parse_migration("0001_a.sql", GOOD).older_may_run, refusing.older_may_run) == (True, False)


def test_two_files_with_one_number_are_refused(tmp_path: Path):
    for file in ("0001_a.sql", "0001_b.sql"):
        (tmp_path / file).write_text(GOOD)

    with pytest.raises(MigrationInvalid, match=r"0001_b.sql: 0001_a.sql has the same number"):
        read_migrations(tmp_path)


def test_function_files_are_read_in_the_order_of_their_names(tmp_path: Path):
    (tmp_path / "functions").mkdir()
    for name in ("b.sql", "a.sql", "notes.md"):
        (tmp_path / "functions" / name).write_text(FUNCTION)

    assert [file.file for file in read_functions(tmp_path / "migrations")] == ["functions/a.sql", "functions/b.sql"]


def test_a_service_without_function_files_has_none(tmp_path: Path):
    assert read_functions(tmp_path / "migrations") == []


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("0001_a.sql", FUNCTION, "named like budget_windows.sql"),
        ("a.sql", "-- Nothing.\n", "CREATE OR REPLACE FUNCTION and no other CREATE"),
        ("a.sql", FUNCTION.replace(" OR REPLACE", ""), "CREATE OR REPLACE FUNCTION and no other CREATE"),
        ("a.sql", FUNCTION + "CREATE TABLE a (id int);\n", "CREATE OR REPLACE FUNCTION and no other CREATE"),
    ],
)
def test_a_file_that_cannot_be_applied_twice_is_named(name: str, text: str, problem: str):
    with pytest.raises(MigrationInvalid, match=problem) as refused:
        parse_functions(name, text)

    assert str(refused.value).startswith(f"functions/{name}")
