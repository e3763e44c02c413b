"""Rows of a form: `pinned.0.document` is a column of its first row. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final

EMPTY_ROWS: Final = 2
"""Below those that are filled in; without scripts a page posted once more has as many again."""

Get = Callable[[str], str | None]
"""A field's text; None: the form has none of that name."""


@dataclass(frozen=True, slots=True)
class SentRow:
    """One row as a form sends it."""

    name: str
    """Before the column, in the names of its fields."""
    get: Get

    def text(self, column: str) -> str:
        return (self.get(f"{self.name}.{column}") or "").replace("\r\n", "\n")

    def ticked(self, column: str) -> bool:
        return self.get(f"{self.name}.{column}") is not None


def sent_rows(get: Get, name: str, *, by: str) -> Iterator[SentRow]:
    """Yield the rows of a form, up to the first that it does not have.

    `by`: a column that each of them sends, also an empty one.
    """
    for number in count():
        row = SentRow(f"{name}.{number}", get)
        if get(f"{row.name}.{by}") is None:
            return
        yield row
