"""Check values against a schema within a budget."""

from __future__ import annotations

from typing import Any

from wayline.schemas.compile import compile_nodes
from wayline.schemas.limits import STEPS_MAX, Budget, OverBudget
from wayline.schemas.nodes import Run


class Schema:
    """A compiled schema."""

    __slots__ = ("_compiled", "_lenient")

    def __init__(self, schema: Any, *, lenient: bool) -> None:
        self._lenient = lenient
        self._compiled = compile_nodes(schema, lenient=lenient)

    @property
    def unchecked(self) -> tuple[str, ...]:
        """Return what of the schema cannot be checked, a sentence each."""
        return self._compiled.unchecked

    def problems(self, value: Any, *, budget: Budget | None = None) -> list[str]:
        """Return what is wrong with a value, field by field. Raises OverBudget."""
        run = Run(budget or Budget(STEPS_MAX), tracks=self._compiled.tracks, lenient=self._lenient)
        try:
            fits = self._compiled.root.check(value, run)
        except RecursionError:
            raise OverBudget("it nests too many comparisons") from None
        return [] if fits else run.texts()


def compile_schema(schema: Any, *, lenient: bool = False) -> Schema:
    """Return a schema that values can be checked against. Raises UnusableSchema.

    `lenient`, for schemas of others' tools: what cannot be checked in bounds is passed over and named in `unchecked`.
    """
    return Schema(schema, lenient=lenient)
