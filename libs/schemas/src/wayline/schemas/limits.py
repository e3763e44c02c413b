"""What a schema may cost: its size, and the steps of one evaluation."""

from __future__ import annotations

SCHEMA_DEPTH_MAX = 100
"""How deep a schema is nested at most."""
SCHEMA_PARTS_MAX = 20_000
"""Of one schema: its values, each key and each item counted."""
STEPS_MAX = 100_000
"""Of one evaluation, a tenth of a second to half of one: a part of the schema compared with a part of the value."""
PARTS_DEPTH_MAX = 200
"""Parts of a schema that are being compared, each inside the one before."""
PATTERNS_MAX = 200
"""Of one schema."""
PATTERNS_SIZE_MAX = 100_000
"""Instructions of all patterns of one schema: about as many microseconds to compile."""
PATTERN_REFUSED_SIZE = 5_000
"""What a pattern counts that the engine refused."""


class UnusableSchema(ValueError):
    """A schema by which nothing can be checked; `where` names the part."""

    def __init__(self, why: str, *, where: str = "$") -> None:
        super().__init__(f"{where}: {why}")
        self.where = where


class OverBudget(Exception):
    """An evaluation that takes more than it may; the message names the limit."""


class Budget:
    """Counts the steps of one evaluation."""

    __slots__ = ("left", "steps_max")

    def __init__(self, steps_max: int = STEPS_MAX) -> None:
        self.steps_max = steps_max
        self.left = steps_max

    def spend(self, steps: int = 1) -> None:
        """Count steps. Raises OverBudget."""
        self.left -= steps
        if self.left < 0:
            raise OverBudget(f"it takes more than {self.steps_max} steps")

    @property
    def spent(self) -> int:
        """Return the steps that were counted."""
        return self.steps_max - self.left
