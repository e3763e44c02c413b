"""What is a migration, and what is said about a file that is none."""

from pathlib import Path

import pytest

from wayline.store import MigrationInvalid
from wayline.store.migration_files import parse, read_migrations

GOOD = "-- Why.\n-- migrate:up\nCREATE TABLE a (id int);\n-- migrate:down\nDROP TABLE a;\n"


def test_only_the_part_between_up_and_down_is_applied():
    migration = parse("0007_add_a.sql", GOOD)

    assert (migration.version, migration.up.strip()) == ("0007", "CREATE TABLE a (id int);")


def test_the_line_endings_of_a_checkout_change_no_checksum():
    assert parse("0001_a.sql", GOOD).checksum == parse("0001_a.sql", GOOD.replace("\n", "\r\n")).checksum


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("1_a.sql", GOOD, "named like 0001_create_chunks.sql"),
        ("0001_a.sql", "CREATE TABLE a (id int);", "needs a line `-- migrate:up`"),
        ("0001_a.sql", "-- migrate:down\n-- migrate:up\n", "needs a line `-- migrate:up`"),
        ("0001_a.sql", GOOD.replace("up\n", "up transaction:false\n"), "each file is one transaction"),
    ],
)
def test_a_file_that_is_no_migration_is_named(file: str, text: str, problem: str):
    with pytest.raises(MigrationInvalid, match=problem) as refused:
        parse(file, text)

    assert str(refused.value).startswith(file)


def test_two_files_with_one_number_are_refused(tmp_path: Path):
    for file in ("0001_a.sql", "0001_b.sql"):
        (tmp_path / file).write_text(GOOD)

    with pytest.raises(MigrationInvalid, match=r"0001_b.sql: 0001_a.sql has the same number"):
        read_migrations(tmp_path)
