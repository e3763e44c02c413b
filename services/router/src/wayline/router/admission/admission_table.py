"""Admissions in Postgres: the version that answers, one reservation a job and its turn, in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from decimal import Decimal
from typing import Any

from wayline.contracts.agent_labels import DEFAULT_LABEL
from wayline.contracts.agents import Agent
from wayline.contracts.errors import Reject
from wayline.contracts.events import JobSubmitted
from wayline.contracts.jobs import Turn
from wayline.router.admission.conditions import AdmissionRequest, Admitted, unknown_agent
from wayline.router.admission.version_choice import unknown_label
from wayline.router.agents.agent_table import read_agent
from wayline.store import Batcher, Record, Store

ADMISSIONS_APART_S = 0.01
"""Under load a job waits a few milliseconds longer here, and a statement and its commit serve several."""
TURNS_WAITING_MAX = 1_000
"""Jobs of one session that have not ended."""


class AdmissionTable:
    """One reservation a job id."""

    def __init__(self, store: Store, *, job_budget_usd: Decimal, turns_waiting_max: int = TURNS_WAITING_MAX) -> None:
        self._store = store
        self._turns_waiting_max = turns_waiting_max
        self.job_budget_usd = job_budget_usd
        self._admissions = Batcher(self._admit, apart_s=ADMISSIONS_APART_S)

    async def admit(self, tenant: str, request: AdmissionRequest) -> Admitted | Reject:
        """Choose the version that answers, read what the job may spend, begin its reservation and take its turn.

        It becomes its user's newest run, too. All in one statement. A reservation is begun once for a job id, and a
        turn taken once, however often it is asked for, and the version stays the one that was chosen first.
        A Reject is returned where there is no such agent, or no such label.
        """
        return await self._admissions.ask(tenant, request)

    async def name_refused(self, first: JobSubmitted) -> None:
        """Note whose a job is that was refused before anything was reserved, so that it is forgotten with its user."""
        job = first.job
        if job.user_id is not None:
            named = (job.tenant, first.job_id, job.agent, job.user_id)
            await self._store.execute(job.tenant, self._store.sql.name_refused_job, *named)

    async def consider(self, tenant: str, request: AdmissionRequest) -> Admitted | Reject:
        """Read the same for a job that is only planned: nothing is begun."""
        [admitted] = await self._admit(tenant, [request], begin=False)
        return admitted

    async def _admit(
        self, tenant: str, requests: Sequence[AdmissionRequest], *, begin: bool = True
    ) -> list[Admitted | Reject]:
        columns = [
            (
                *(w.job_id, w.agent, w.user_id, w.budget_usd, w.session_id, w.when_busy),
                *(w.label, w.lot, w.conversation),
                *(w.accepted or (None, None)),
                w.sequence,
            )
            for w in requests
        ]
        ids, names, users, usd, sessions, busy, *rest = map(list, zip(*columns, strict=True))
        before = ids, names, users, usd, self.job_budget_usd
        after = sessions, busy, self._turns_waiting_max, *rest[3:], _earlier_than(requests), *rest[:3], DEFAULT_LABEL
        rows = await self._store.fetch(tenant, self._store.sql.admit, tenant, *before, None, begin, *after)
        known = {(row["name"], row["version"]): read_agent(row["name"], row) for row in rows if row["job_id"] is None}
        newest = {name: known[name, version] for name, version in sorted(known)}
        chosen = {
            (row["job_id"], row["name"]): row for row in rows if row["job_id"] is not None and row["name"] is not None
        }
        of_jobs = [row for row in rows if row["job_id"] is not None and row["name"] is None]
        # Only a job that was admitted to a session, or refused by it, has one of these.
        turns = {row["job_id"]: row for row in of_jobs if row["turn"] is not None or row["open_job"] is not None}
        bounds = {row["job_id"]: row for row in of_jobs if row is not turns.get(row["job_id"])}
        found = list[Admitted | Reject]()
        for request in requests:
            choice = chosen.get((request.job_id, request.agent))
            if request.agent not in newest:
                found.append(unknown_agent(request.agent))
            elif choice is not None and choice["version"] is None and request.label is not None:
                found.append(unknown_label(request.agent, request.label))
            else:
                bound, turn = bounds.get(request.job_id), turns.get(request.job_id)
                if choice is None or choice["version"] is None:
                    found.append(self._admitted(request, newest[request.agent], bound, turn))
                else:
                    agent = known[request.agent, choice["version"]]
                    found.append(replace(self._admitted(request, agent, bound, turn), label=choice["label"]))
        return found

    def _admitted(self, request: AdmissionRequest, agent: Agent, bound: Record | None, turn: Record | None) -> Admitted:
        # Each that is set holds: a job may ask for less than its agent and the budgets for each job leave, never more.
        several = (request.budget_usd, agent.config.max_cost_usd, bound["cap_usd"] if bound is not None else None)
        chosen = min((usd for usd in several if usd is not None), default=None)
        return Admitted(
            agent=agent,
            cap_usd=self.job_budget_usd if chosen is None else chosen,
            cap_set=chosen is not None,
            left_usd=bound["left_usd"] if bound is not None else None,
            tightest=(bound["tightest"] if bound is not None else None) or "",
            turn=Turn(number=turn["turn"], after=turn["turn_after"]) if turn and turn["turn"] is not None else None,
            open_job=turn["open_job"] if turn else None,
        )


def _earlier_than(requests: Sequence[AdmissionRequest]) -> list[dict[str, Any]]:
    """Return the submissions that take their turns before those that are admitted, each once."""
    admitted = {request.job_id for request in requests}
    earlier = {turn.job_id: turn for request in requests for turn in request.earlier if turn.job_id not in admitted}
    return [asdict(turn) for turn in earlier.values()]
