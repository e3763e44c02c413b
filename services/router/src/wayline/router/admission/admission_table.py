"""Admissions in Postgres: an agent's newest version, one reservation a job and its turn, in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from wayline.contracts.agents import Agent
from wayline.contracts.jobs import Turn
from wayline.router.admission.conditions import AdmissionRequest, Admitted
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

    async def admit(self, tenant: str, request: AdmissionRequest) -> Admitted | None:
        """Read an agent's newest version and what the job may spend, begin its reservation and take its turn.

        It becomes its user's newest run, too. All in one statement. A reservation is begun once for a job id, and a
        turn taken once, however often it is asked for.
        None: there is no such agent.
        """
        return await self._admissions.ask(tenant, request)

    async def consider(self, tenant: str, request: AdmissionRequest) -> Admitted | None:
        """Read the same for a job that is only planned: nothing is begun."""
        [admitted] = await self._admit(tenant, [request], begin=False)
        return admitted

    async def _admit(
        self, tenant: str, requests: Sequence[AdmissionRequest], *, begin: bool = True
    ) -> list[Admitted | None]:
        columns = [
            (
                *(w.job_id, w.agent, w.user_id, w.budget_usd, w.session_id, w.when_busy),
                *(w.accepted or (None, None)),
                w.sequence,
            )
            for w in requests
        ]
        ids, names, users, usd, sessions, busy, *places = map(list, zip(*columns, strict=True))
        before = ids, names, users, usd, self.job_budget_usd
        after = sessions, busy, self._turns_waiting_max, *places, _earlier_than(requests)
        rows = await self._store.fetch(tenant, self._store.sql.admit, tenant, *before, None, begin, *after)
        agents = {row["name"]: read_agent(row["name"], row) for row in rows if row["job_id"] is None}
        of_jobs = [row for row in rows if row["job_id"] is not None]
        # Only a job that was admitted to a session, or refused by it, has one of these.
        turns = {row["job_id"]: row for row in of_jobs if row["turn"] is not None or row["open_job"] is not None}
        bounds = {row["job_id"]: row for row in of_jobs if row is not turns.get(row["job_id"])}
        return [
            self._admitted(request, agents[request.agent], bounds.get(request.job_id), turns.get(request.job_id))
            if request.agent in agents
            else None
            for request in requests
        ]

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
