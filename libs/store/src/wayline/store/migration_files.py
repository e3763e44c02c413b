"""Read a schema's SQL files: numbered migrations in dbmate's format, and function files that are applied again."""

import hashlib
import re
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path

from wayline.store.errors import MigrationInvalid
from wayline.store.index_statements import IndexStatement, read_index_statements

FUNCTIONS = "functions"
"""The directory of function files, beside that of the migrations."""

_FILE_NAME = re.compile(r"(?P<version>\d{4})_[a-z0-9_]+\.sql")
_UP = re.compile(r"^--\s*migrate:up(?P<options>.*)$", re.MULTILINE)
ONE_BY_ONE = "transaction:false"
"""The option of a migration whose statements run each by itself: indexes that are made or dropped concurrently."""
OLDER_REFUSED = "older:refused"
"""The option of a migration after which the version before must not be migrated to again: it takes something away."""
_DOWN = re.compile(r"^--\s*migrate:down\b.*$", re.MULTILINE)
_EACH_TIME = re.compile(r"^--\s*migrate:each-time\s*$", re.MULTILINE)
_FUNCTION_FILE_NAME = re.compile(r"[a-z][a-z0-9_]*\.sql")
_CREATE = re.compile(r"^CREATE\b(?P<replaces>\s+OR\s+REPLACE\s+FUNCTION\b)?", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class SqlFile:
    """Statements that are applied together, and how the schema remembers that they were."""

    version: str
    """The number of a migration; `functions/words.sql` of a function file."""
    file: str
    statements: str
    starts_at_line: int
    checksum: str
    each_time: bool = False
    """Applied by every migration: what it sets is lost where a database is copied by dump and restore."""
    indexes: tuple[IndexStatement, ...] = ()
    """Of a migration whose statements run each by itself."""
    older_may_run: bool = True
    """Whether the version before works with the tables after it, and may migrate them again."""


def read_migrations(directory: Path | Traversable) -> list[SqlFile]:
    """Return all migrations of a directory, in the order of their numbers."""
    found: dict[str, SqlFile] = {}
    for name, text in _read_sql(directory):
        migration = parse_migration(name, text)
        if twin := found.get(migration.version):
            raise MigrationInvalid(file=name, problem=f"{twin.file} has the same number")
        found[migration.version] = migration
    if not found:
        raise MigrationInvalid(file=str(directory), problem="there is no migration in this directory")
    return list(found.values())


def read_functions(migrations: Path) -> list[SqlFile]:
    """Return the function files beside a directory of migrations, in the order of their names."""
    directory = migrations.parent / FUNCTIONS
    if not directory.is_dir():
        return []
    return [parse_functions(name, text) for name, text in _read_sql(directory)]


def parse_migration(file: str, text: str) -> SqlFile:
    """Return the migration in one file's text."""
    name = _FILE_NAME.fullmatch(file)
    if not name:
        raise MigrationInvalid(file=file, problem="a migration is named like 0001_create_chunks.sql")
    text = text.replace("\r\n", "\n")
    up, down = _UP.search(text), _DOWN.search(text)
    if not up or not down or down.start() < up.start():
        raise MigrationInvalid(file=file, problem="it needs a line `-- migrate:up`, then a line `-- migrate:down`")
    options = set(up["options"].split())
    if unknown := options - {ONE_BY_ONE, OLDER_REFUSED}:
        problem = f"option {' '.join(sorted(unknown))!r}: there are {ONE_BY_ONE!r} and {OLDER_REFUSED!r}"
        raise MigrationInvalid(file=file, problem=problem)
    statements, starts_at_line = text[up.end() : down.start()], text.count("\n", 0, up.end()) + 1
    indexes: list[IndexStatement] = []
    if ONE_BY_ONE in options:
        indexes = read_index_statements(statements, file=file, starts_at_line=starts_at_line)
        if not indexes:
            raise MigrationInvalid(file=file, problem=f"it says {ONE_BY_ONE!r} and has no statement")
    return SqlFile(
        version=name["version"],
        file=file,
        statements=statements,
        starts_at_line=starts_at_line,
        checksum=_checksum(text),
        indexes=tuple(indexes),
        older_may_run=OLDER_REFUSED not in options,
    )


def parse_functions(name: str, text: str) -> SqlFile:
    """Return the functions in one file's text."""
    file = f"{FUNCTIONS}/{name}"
    if not _FUNCTION_FILE_NAME.fullmatch(name):
        raise MigrationInvalid(file=file, problem="a function file is named like budget_windows.sql")
    text = text.replace("\r\n", "\n")
    created = list(_CREATE.finditer(text))
    each_time = bool(_EACH_TIME.search(text))
    if not (created or each_time) or not all(found["replaces"] for found in created):
        raise MigrationInvalid(
            file=file,
            problem="it is applied whenever it changes, so it holds CREATE OR REPLACE FUNCTION and no other CREATE",
        )
    return SqlFile(
        version=file,
        file=file,
        statements=text,
        starts_at_line=1,
        checksum=_checksum(text),
        each_time=each_time,
    )


def is_function_file(version: str) -> bool:
    """Return whether a file that a schema remembers is a function file, not a migration."""
    return version.startswith(f"{FUNCTIONS}/")


def _read_sql(directory: Path | Traversable) -> list[tuple[str, str]]:
    entries = sorted(directory.iterdir(), key=lambda entry: entry.name)
    return [(entry.name, entry.read_text(encoding="utf-8")) for entry in entries if entry.name.endswith(".sql")]


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
