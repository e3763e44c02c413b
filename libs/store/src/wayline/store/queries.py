"""Named queries from a .sql file, so that SQL is read where SQL is expected."""

import re
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path

from wayline.store.errors import QueriesInvalid, UnknownQuery

_HEADER = re.compile(r"--\s*name:(?P<name>.*)")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


class Queries:
    """The statements of one file, each an attribute by its name."""

    def __init__(self, statements: dict[str, str], *, source: str) -> None:
        self._statements = statements
        self._source = source

    @classmethod
    def load(cls, file: Path | Traversable) -> "Queries":
        """Read the statements under their `-- name: insert_chunk` headers."""
        return _parse(file.read_text(encoding="utf-8"), str(file))

    @classmethod
    def parse(cls, text: str, *, source: str) -> "Queries":
        """Read the statements out of the text of a file."""
        starts: dict[str, int] = {}
        bodies: dict[str, list[str]] = {}
        current: str | None = None
        for number, line in enumerate(text.splitlines(), start=1):
            if header := _HEADER.fullmatch(line.strip()):
                current = _new_name(header["name"].strip(), starts, source=source, line=number)
                starts[current], bodies[current] = number, []
            elif current is not None:
                bodies[current].append(line)
            elif line.strip() and not line.strip().startswith("--"):
                raise QueriesInvalid(source=source, line=number, problem="a statement before the first `-- name:`")
        statements = {name: "\n".join(lines).strip().removesuffix(";") for name, lines in bodies.items()}
        for name, statement in statements.items():
            if not _has_sql(statement):
                raise QueriesInvalid(source=source, line=starts[name], problem=f"query {name!r} is empty")
        return cls(statements, source=source)

    def __getattr__(self, name: str) -> str:
        # Not through `self`: copying and pickling look for attributes before there are any.
        statements: dict[str, str] = self.__dict__.get("_statements", {})
        try:
            return statements[name]
        except KeyError:
            source = self.__dict__.get("_source", "")
            raise UnknownQuery(name=name, source=source, known=sorted(statements)) from None

    def __dir__(self) -> list[str]:
        return sorted(self._statements)


@cache
def _parse(text: str, source: str) -> Queries:
    """Parse each file once in a process: what a store, a job and a test of it read is the same."""
    return Queries.parse(text, source=source)


def _new_name(name: str, seen: dict[str, int], *, source: str, line: int) -> str:
    if not _NAME.fullmatch(name):
        raise QueriesInvalid(source=source, line=line, problem=f"{name!r} is no query name (lower_case_words)")
    if name in seen:
        raise QueriesInvalid(
            source=source, line=line, problem=f"query {name!r} was defined on line {seen[name]} already"
        )
    return name


def _has_sql(statement: str) -> bool:
    return any(line.strip() and not line.strip().startswith("--") for line in statement.splitlines())
