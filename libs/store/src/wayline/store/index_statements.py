"""Read the statements of a migration that runs outside of a transaction: indexes that are made or dropped concurrently.

Such a file may be cut between two statements, so each of its statements has to be one that can be repeated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from wayline.store.errors import MigrationInvalid

_COMMENT: Final = re.compile(r"--[^\n]*")
_MADE: Final = re.compile(
    r"CREATE\s+(?P<unique>UNIQUE\s+)?INDEX\s+CONCURRENTLY\s+(?P<name>[a-z_][a-z0-9_]*)\s+"
    r"ON\s+(?P<table>[a-z_][a-z0-9_]*)\b(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_DROPPED: Final = re.compile(
    r"DROP\s+INDEX\s+CONCURRENTLY\s+IF\s+EXISTS\s+(?P<name>[a-z_][a-z0-9_]*)", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True)
class IndexStatement:
    """One index that is made, or dropped."""

    text: str
    index: str
    line: int
    table: str | None = None
    """Of an index that is made."""
    unique: bool = False
    rest: str = ""
    """What follows the table: columns, options, condition."""

    def of_parent(self, schema: str) -> str:
        """Return the statement for a partitioned table alone, without its partitions."""
        return (
            f'CREATE {"UNIQUE " if self.unique else ""}INDEX {self.index} ON ONLY "{schema}"."{self.table}"{self.rest}'
        )

    def of_partition(self, schema: str, partition: str, index: str) -> str:
        """Return the statement for one partition, under a name of its own."""
        kind = "UNIQUE INDEX" if self.unique else "INDEX"
        return f'CREATE {kind} CONCURRENTLY "{index}" ON "{schema}"."{partition}"{self.rest}'


def read_index_statements(statements: str, *, file: str, starts_at_line: int) -> list[IndexStatement]:
    """Return the statements of a file in their order. Raises MigrationInvalid for one that cannot be repeated."""
    return [_read(text, line + starts_at_line, file=file) for text, line in _split(statements)]


def _read(text: str, line: int, *, file: str) -> IndexStatement:
    if made := _MADE.fullmatch(text):
        return IndexStatement(text, made["name"], line, made["table"], bool(made["unique"]), made["rest"])
    if dropped := _DROPPED.fullmatch(text):
        return IndexStatement(text, dropped["name"], line)
    raise MigrationInvalid(
        file=f"{file}:{line}",
        problem="outside of a transaction only `CREATE INDEX CONCURRENTLY name ON table …` and "
        "`DROP INDEX CONCURRENTLY IF EXISTS name` are possible: put the rest into a migration of its own",
    )


def _split(statements: str) -> Iterator[tuple[str, int]]:
    """Yield each statement without its comments, and the number of lines before it."""
    # Spaces for comments: every position stays on its line.
    plain = _COMMENT.sub(lambda found: " " * len(found[0]), statements)
    at = 0
    for part in plain.split(";"):
        if text := part.strip():
            yield text, plain.count("\n", 0, at + part.index(text[0]))
        at += len(part) + 1
