"""Whether a job may run, by the limits that count it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, get_args

from wayline.contracts.run_controls import EACH, Whose

WHOSE: tuple[Whose, ...] = get_args(Whose)


class LimitUse(NamedTuple):
    """A limit that counts a job, and the other jobs in it."""

    whose: Whose
    name: str
    max_running: int
    when_full: str
    running: int
    """Others that have a place."""
    before: bool
    """Others wait for one."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> LimitUse:
        return cls(*(row[name] for name in cls._fields))

    @property
    def words(self) -> str:
        """Return in words why it has no place."""
        whose = f"each {self.whose}" if self.name == EACH else f"{self.whose} {self.name}"
        if self.running < self.max_running:
            return f"other jobs wait before it for one of the {self.max_running} places for {whose}"
        return f"{self.running} of the {self.max_running} jobs run that may run at once for {whose}"


def full_limit(uses: Iterable[LimitUse]) -> LimitUse | None:
    """Return a limit that has no place for a job, or whose next place is another's; None: it may run."""
    return next((use for use in uses if use.running >= use.max_running or use.before), None)


class Counted(NamedTuple):
    """What limits count a job by, in the order of `Whose`."""

    agent: str
    user_id: str | None
    key_id: str | None


class FreePlaces:
    """The places of a tenant that are free, as they are given one after another."""

    def __init__(
        self, limits: Iterable[tuple[Whose, str, int]], running: Iterable[tuple[str, str | None, str | None, int]]
    ) -> None:
        self._limits = {(whose, name): max_running for whose, name, max_running in limits}
        self._running = Counter[tuple[Whose, str]]()
        for agent, user_id, key_id, jobs in running:
            for one in _named(Counted(agent, user_id, key_id)):
                self._running[one] += jobs

    def full(self, whose: Whose) -> list[str]:
        """Return the names of those agents, users or keys that have no free place."""
        return [name for kind, name in self._running if kind == whose and self._is_full((kind, name))]

    def take(self, job: Counted) -> bool:
        """Take a place for a job; return whether all that count it had one."""
        names = _named(job)
        if any(self._is_full(one) for one in names):
            return False
        self._running.update(names)
        return True

    def _is_full(self, one: tuple[Whose, str]) -> bool:
        whose, _ = one
        most = self._limits.get(one, self._limits.get((whose, EACH)))
        return most is not None and self._running[one] >= most


def _named(job: Counted) -> list[tuple[Whose, str]]:
    return [(whose, name) for whose, name in zip(WHOSE, job, strict=True) if name is not None]
