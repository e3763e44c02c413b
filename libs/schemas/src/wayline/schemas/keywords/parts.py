"""Read the parts of a schema that keywords are made of, and say where one is not of its kind."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from wayline.schemas.limits import UnusableSchema
from wayline.schemas.nodes import Check, Node, Run
from wayline.schemas.patterns import Pattern, UnsupportedPattern
from wayline.schemas.problems import shown


@dataclass(frozen=True)
class Part:
    """One keyword of a schema: its value, the schema that it stands in, and how subschemas of it are built."""

    keyword: str
    value: Any
    schema: dict[str, Any]
    where: str
    """The place of the keyword, which names it in an error."""
    subschema: Callable[[Any, str], Node]
    compile_pattern: Callable[[str], Pattern]
    uncheckable: Callable[[str], None]
    """Told what cannot be checked; raises where nothing may be left unchecked."""

    def wrong(self, what: str) -> UnusableSchema:
        """Return the error of a value that is not of its kind."""
        return UnusableSchema(f"{shown(self.value)} is not {what}", where=self.where)

    def node(self, value: Any, *under: str | int) -> Node:
        """Return the node of a subschema that stands under the keyword."""
        return self.subschema(value, "".join((self.where, *(f".{part}" for part in under))))

    def nodes(self) -> list[Node]:
        """Return the nodes of a list of subschemas."""
        if not isinstance(self.value, list) or not self.value:
            raise self.wrong("a list of schemas")
        return [self.node(one, number) for number, one in enumerate(self.value)]

    def named_nodes(self) -> dict[str, Node]:
        """Return the nodes of subschemas by name."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object of schemas")
        return {name: self.node(one, name) for name, one in self.value.items()}

    def count(self) -> int:
        """Return a number of characters, items or properties."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0 or value != int(value):
            raise self.wrong("a count")
        return int(value)

    def number(self) -> int | float:
        """Return a number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.wrong("a number")
        return self.value

    def names(self, value: Any) -> list[str]:
        """Return a list of names."""
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self.wrong("a list of names")
        return list(dict.fromkeys(value))

    def pattern(self, source: Any) -> Pattern | None:
        """Return a compiled pattern; None: it is left unchecked."""
        if not isinstance(source, str):
            raise self.wrong("a pattern")
        try:
            return self.compile_pattern(source)
        except UnsupportedPattern as error:
            self.uncheckable(str(error))
            return None


Make = Callable[[Part], Check | None]
"""Makes the check of one keyword; None: there is nothing to check."""


NAMES_A_STEP = 10


def names_in_both(value: dict[str, Any], named: Collection[str], run: Run) -> list[str]:
    """Return the properties of a value that a schema names; the smaller side is looked through, and counted."""
    fewer, others = (named, value) if len(named) < len(value) else (value, named)
    run.budget.spend(1 + len(fewer) // NAMES_A_STEP)
    return [name for name in fewer if name in others]


def is_number(value: Any) -> bool:
    """Return whether a value is a number of JSON."""
    return isinstance(value, int | float) and not isinstance(value, bool)
