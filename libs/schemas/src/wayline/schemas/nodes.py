"""A compiled schema: nodes, each with the checks of its keywords, and what one evaluation remembers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wayline.schemas.limits import PARTS_DEPTH_MAX, Budget, OverBudget
from wayline.schemas.patterns import Pattern
from wayline.schemas.problems import problem_text

SEARCH_STEPS_MAX = 20_000
"""Of one search of a pattern in a schema of a server that checks again; what takes more is left to it."""
PROBLEMS_FOUND_MAX = 50
"""Of one evaluation; the others are not looked for."""


class Evaluated:
    """The properties and items of one value that parts of a schema have looked at, for `unevaluatedProperties`."""

    __slots__ = ("items", "names")

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.items: set[int] = set()

    def add(self, other: Evaluated) -> None:
        """Take in what another part has looked at."""
        self.names |= other.names
        self.items |= other.items


class Run:
    """One evaluation: its budget, the place in the value, the problems so far."""

    __slots__ = ("active", "budget", "depth", "known", "lenient", "path", "problems", "tracks")

    def __init__(self, budget: Budget, *, tracks: bool, lenient: bool) -> None:
        self.budget = budget
        self.tracks = tracks
        """Whether it is kept which parts of the value were looked at."""
        self.lenient = lenient
        self.path: list[str | int] = []
        self.problems: list[tuple[list[str], str]] | None = []
        """None: only whether the value fits is asked."""
        self.depth = 0
        self.known: dict[tuple[int, int, bool, bool], tuple[bool, Evaluated | None]] = {}
        """What became of a node that is referred to, by node and value: each pair is evaluated once."""
        self.active: set[tuple[int, int]] = set()

    def fail(self, tell: Callable[[Any], str], about: Any) -> bool:
        """Note a problem at this place of the value; always False."""
        # Most problems are of alternatives and are never shown: their words would cost more than the comparison.
        if self.problems is not None and len(self.problems) < PROBLEMS_FOUND_MAX:
            self.problems.append(([str(part) for part in self.path], tell(about)))
        return False

    def finds(self, pattern: Pattern, text: str) -> bool:
        """Return whether a pattern is found in a text; a text too long for it fits where others check again."""
        steps = pattern.steps(text)
        if self.lenient and steps > SEARCH_STEPS_MAX:
            return True
        self.budget.spend(steps)
        return pattern.found_in(text)

    @property
    def enough(self) -> bool:
        """Return whether no further problem has to be looked for."""
        return self.problems is None or len(self.problems) >= PROBLEMS_FOUND_MAX

    def texts(self) -> list[str]:
        """Return the problems in the order of their fields."""
        found = [problem_text(".".join(path), message) for path, message in sorted(self.problems or [])]
        return list(dict.fromkeys(found))


Check = Callable[[Any, Run, "Evaluated | None"], bool]
"""Compares a value with one keyword; the last argument hears which parts of the value were looked at."""


class Node:
    """One schema or subschema."""

    __slots__ = ("always", "checks")

    def __init__(self) -> None:
        self.checks: list[Check] = []
        self.always: list[Node] = []
        """The nodes that the same value is compared with in every case."""

    def check(self, value: Any, run: Run, seen: Evaluated | None = None) -> bool:
        """Return whether a value fits. Raises OverBudget."""
        run.budget.spend()
        if seen is None and run.tracks:
            seen = Evaluated()
        run.depth += 1
        if run.depth > PARTS_DEPTH_MAX:
            raise OverBudget(f"it nests more than {PARTS_DEPTH_MAX} comparisons")
        fits = True
        for one in self.checks:
            if not one(value, run, seen):
                fits = False
                if run.enough:
                    break
        run.depth -= 1
        return fits

    def fits(self, value: Any, run: Run, seen: Evaluated | None = None) -> bool:
        """Return whether a value fits, and note no problem."""
        loud, run.problems = run.problems, None
        depth = run.depth
        try:
            return self.check(value, run, seen)
        finally:
            run.problems, run.depth = loud, depth

    def check_once(self, value: Any, run: Run, seen: Evaluated | None) -> bool:
        """Return what `check` does, for a node that many parts of a schema refer to."""
        pair = (id(self), id(value))
        quiet = run.problems is None
        key = (*pair, quiet, seen is not None)
        if (known := run.known.get(key)) is not None:
            run.budget.spend()
            fits, inner = known
        else:
            if pair in run.active:
                raise OverBudget("it refers to itself without end")
            run.active.add(pair)
            inner = None if seen is None else Evaluated()
            fits = self.check(value, run, inner)
            run.active.discard(pair)
            # What fails aloud is looked at again, for its problem at each place; their number has a limit.
            if fits or quiet:
                run.known[key] = fits, inner
        if fits and seen is not None and inner is not None:
            run.budget.spend(len(inner.names) + len(inner.items))
            seen.add(inner)
        return fits
