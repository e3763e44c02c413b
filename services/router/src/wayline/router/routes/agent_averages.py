"""What each agent's recent jobs used: averages that predictions rest on, learned from every settled job.

No job waits for them: what ended jobs used is gathered in memory and written every few seconds. What a killed router
had not written yet is lost: the averages are a little older. A decision pins the figures that it used in its record.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil

from wayline.chassis import Periodic
from wayline.chassis.concurrency.single_flight import SingleFlight
from wayline.contracts.budgets import JobUse, ModelUse
from wayline.contracts.events import Observed, ToolsObserved
from wayline.contracts.models import Slot
from wayline.store import Record, Store

JOBS_MIN = 3
"""Fewer jobs of an agent on a model in a slot say nothing."""
JOBS_REMEMBERED = 20
"""About how many of the newest jobs make an average."""
DEVIATIONS = 4
"""How many deviations above the average nearly every job's longest call stays."""
BELIEVED_FOR = timedelta(days=7)
"""What was not seen for longer is as good as never seen: so a slot that was too dear is tried again."""
FORGOTTEN_AT_ONCE = 100
ROWS_MAX = 100
"""Models and slots of one agent that a decision looks at: those used last."""
WAITING_MAX = 10_000
"""Ended jobs whose use is not written yet; more are not counted."""
DENSITY_DIGITS = 3
VIEWS_MAX = 4_096
"""Agents whose figures are kept in memory; one more, and all are read again."""


@dataclass(frozen=True, slots=True)
class AgentAverages:
    """Averages of an agent's recent jobs."""

    observed: tuple[Observed, ...] = ()
    tools: ToolsObserved | None = None


class AgentUsage:
    """Gathers what settled jobs used, writes it every `every_s`, and tells what is known, read every `every_s` too."""

    def __init__(self, store: Store, *, every_s: float) -> None:
        self._store = store
        self._every_s = every_s
        self._waiting: dict[str, list[JobUse]] = {}
        self._count = 0
        self._views: dict[tuple[str, str], tuple[float, AgentAverages]] = {}
        self._reads = SingleFlight[tuple[str, str], AgentAverages]()
        # One more turn when it stops: what is left is written too.
        self._periodic = Periodic("agent usage", self._write_now, every_s=every_s, last_turn=True)
        self.start = self._periodic.start
        self.stop = self._periodic.stop

    def note(self, tenant: str, used: JobUse) -> None:
        """Count a settled job."""
        if self._count < WAITING_MAX:
            self._count += 1
            self._waiting.setdefault(tenant, []).append(used)

    async def agent_averages(self, tenant: str, agent: str, *, now: datetime) -> AgentAverages:
        """Return what is known of an agent's recent jobs."""
        until, known = self._views.get((tenant, agent), (0.0, AgentAverages()))
        if until > time.monotonic():
            return known
        return await self._reads.fetch((tenant, agent), lambda: self._read(tenant, agent, now))

    async def _read(self, tenant: str, agent: str, now: datetime) -> AgentAverages:
        sql = self._store.sql.agent_usage
        rows = await self._store.fetch(tenant, sql, tenant, agent, now - BELIEVED_FOR, ROWS_MAX)
        if len(self._views) >= VIEWS_MAX:
            self._views.clear()
        known = _agent_averages(rows)
        self._views[tenant, agent] = time.monotonic() + self._every_s, known
        return known

    async def write(self, *, now: datetime) -> None:
        """Write what was gathered."""
        waiting, self._waiting, self._count = self._waiting, {}, 0
        for tenant, used in waiting.items():
            sql, columns = self._store.sql, map(list, zip(*averages(used), strict=True))
            await self._store.execute(tenant, sql.forget_usage, tenant, now - BELIEVED_FOR, FORGOTTEN_AT_ONCE)
            await self._store.execute(tenant, sql.learn_usage, tenant, *columns, now, JOBS_REMEMBERED)

    async def _write_now(self) -> None:
        await self.write(now=datetime.now(UTC))


Row = tuple[str, str, Slot, int, float, float, float, int, int, float | None]


def averages(used: Sequence[JobUse]) -> list[Row]:
    """Return a row for each agent, model and slot: its jobs, and what they used on average; the newest job's tools."""
    by_place: dict[tuple[str, str, Slot], tuple[JobUse, list[ModelUse]]] = {}
    for job in used:
        for one in job.models:
            place = job.agent, one.model, one.slot
            _, before = by_place.get(place, (job, []))
            by_place[place] = job, [*before, one]
    return [_row(place, newest, several) for place, (newest, several) in by_place.items()]


def _row(place: tuple[str, str, Slot], newest: JobUse, several: Sequence[ModelUse]) -> Row:
    jobs, calls = len(several), sum(one.calls for one in several)
    output, longest = (
        sum(tokens) for tokens in zip(*((one.output_tokens, one.longest_tokens) for one in several), strict=True)
    )
    densities = [one.density for one in several if one.density is not None]
    density = sum(densities) / len(densities) if densities else None
    return *place, jobs, calls / jobs, output / calls, longest / jobs, newest.tools, newest.tools_tokens, density


def _agent_averages(rows: Iterable[Record]) -> AgentAverages:
    found = list(rows)
    observed = tuple(
        Observed(
            model=row["model"],
            slot=row["slot"],
            jobs=row["jobs"],
            calls=max(1, round(row["calls"])),
            output_tokens=ceil(row["output_tokens"]),
            longest_tokens=ceil(row["longest_tokens"] + DEVIATIONS * row["longest_deviation"]),
            density=row["density"] and round(row["density"], DENSITY_DIGITS),
        )
        for row in found
        if row["jobs"] >= JOBS_MIN
    )
    if not found:
        return AgentAverages()
    return AgentAverages(observed, ToolsObserved(count=found[0]["tools"], tokens=found[0]["tools_tokens"]))
