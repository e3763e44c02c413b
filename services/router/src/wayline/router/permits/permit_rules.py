"""Whether a job may run, by the limits that count it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from wayline.contracts.run_controls import EACH, Whose


class LimitUse(NamedTuple):
    """A limit that counts a job, and the other jobs in it."""

    whose: Whose
    name: str
    max_running: int
    when_full: str
    running: int
    """Others that have a place."""
    before: int
    """Others that wait for one."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> LimitUse:
        return cls(*(row[name] for name in cls._fields))

    @property
    def words(self) -> str:
        """Return in words that it is full."""
        whose = f"each {self.whose}" if self.name == EACH else f"{self.whose} {self.name}"
        return f"{self.running} of the {self.max_running} jobs run that may run at once for {whose}"


def full_limit(uses: Iterable[LimitUse], *, in_turn: bool = False) -> LimitUse | None:
    """Return a limit that has no place for a job, or whose next place is another's; None: it may run.

    `in_turn`: it is looked at in the order in which jobs began to wait, so nobody is before it.
    """
    return next((use for use in uses if use.running >= use.max_running or (use.before and not in_turn)), None)
