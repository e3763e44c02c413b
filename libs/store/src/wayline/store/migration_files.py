"""Read migrations from dbmate-format SQL files named `0001_words.sql`."""

import hashlib
import re
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path

from wayline.store.errors import MigrationInvalid

_FILE_NAME = re.compile(r"(?P<version>\d{4})_[a-z0-9_]+\.sql")
_UP = re.compile(r"^--\s*migrate:up(?P<options>.*)$", re.MULTILINE)
_DOWN = re.compile(r"^--\s*migrate:down\b.*$", re.MULTILINE)


@dataclass(frozen=True)
class Migration:
    """One step of a schema's history."""

    version: str
    file: str
    up: str
    up_starts_at_line: int
    checksum: str


def read_migrations(directory: Path | Traversable) -> list[Migration]:
    """All migrations of a directory, in the order of their numbers."""
    found: dict[str, Migration] = {}
    for entry in sorted(directory.iterdir(), key=lambda entry: entry.name):
        if not entry.name.endswith(".sql"):
            continue
        migration = parse(entry.name, entry.read_text(encoding="utf-8"))
        if twin := found.get(migration.version):
            raise MigrationInvalid(file=entry.name, problem=f"{twin.file} has the same number")
        found[migration.version] = migration
    if not found:
        raise MigrationInvalid(file=str(directory), problem="there is no migration in this directory")
    return list(found.values())


def parse(file: str, text: str) -> Migration:
    """The migration in one file's text."""
    name = _FILE_NAME.fullmatch(file)
    if not name:
        raise MigrationInvalid(file=file, problem="a migration is named like 0001_create_chunks.sql")
    text = text.replace("\r\n", "\n")
    up, down = _UP.search(text), _DOWN.search(text)
    if not up or not down or down.start() < up.start():
        raise MigrationInvalid(file=file, problem="it needs a line `-- migrate:up`, then a line `-- migrate:down`")
    if up["options"].strip():
        raise MigrationInvalid(file=file, problem=f"option {up['options'].strip()!r}: each file is one transaction")
    return Migration(
        version=name["version"],
        file=file,
        up=text[up.end() : down.start()],
        up_starts_at_line=text.count("\n", 0, up.end()) + 1,
        checksum=hashlib.sha256(text.encode()).hexdigest(),
    )
