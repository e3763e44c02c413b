"""Budgets in Postgres: what is held for jobs, what they cost in the end, and who waits for more.

Money is held when a call needs it, and not before: only the executor knows the most its next call can cost. A smaller
sum held earlier would be worse than none, because many jobs would each hold a part and none could go on. The first
call's hold is therefore the admission, in one statement for all that ask at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal

import asyncpg

from wayline.contracts.budgets import (
    Budget,
    BudgetDeleted,
    BudgetList,
    ChargeBudgets,
    DeleteBudget,
    ExtendBudget,
    Extended,
    HoldCharge,
    ListBudgets,
    PutBudget,
    ReleaseBudget,
    Released,
    Settled,
    SettleJob,
)
from wayline.contracts.errors import NotFound, Reject
from wayline.router.tenants.settings_in_force import read_settings
from wayline.store import Batcher, Record, Store

BUDGETS_MAX = 100
"""Budgets of one tenant: each decision reads them all."""
HOLDS_APART_S = 0.01
"""A call waits for its hold, so no longer than a statement takes anyway."""
SETTLEMENTS_APART_S = 0.1
"""Nobody waits for a settlement: its job has ended and its result is out."""

Moment = Callable[[], datetime | None]


def database_time() -> None:
    """Return the moment that windows are chosen by: the database's own clock, one for all routers."""


class Budgets:
    """A tenant's budgets and what its jobs hold of them."""

    def __init__(
        self,
        store: Store,
        *,
        job_budget_usd: Decimal,
        changed: Callable[[], None] = lambda: None,
        moment: Moment = database_time,
    ) -> None:
        self._store = store
        self._job_budget_usd = job_budget_usd
        self._changed = changed
        self._moment = moment
        self._holds = Batcher(self._hold, apart_s=HOLDS_APART_S)
        self._settlements = Batcher(self._settle, apart_s=SETTLEMENTS_APART_S)

    async def on_extend(self, request: ExtendBudget) -> Extended:
        """Hold more for a job, if its own budget and every hard one that counts it have room."""
        ask = request.job_id, request.total_usd, request.cap_usd, request.seq, request.waits
        extended = await self._holds.ask(request.tenant, ask)
        if extended is None:
            raise NotFound("reservation of job", request.job_id)
        return extended

    async def _hold(
        self, tenant: str, asked: Sequence[tuple[str, Decimal | None, Decimal | None, int, bool]]
    ) -> list[Extended | None]:
        columns = map(list, zip(*asked, strict=True))
        rows = await self._store.fetch(tenant, self._store.sql.hold, tenant, *columns, self._moment())
        answers = {row["nth"]: _extended(row) for row in rows}
        return [answers.get(number) for number in range(1, len(asked) + 1)]

    async def on_settle(self, request: SettleJob) -> Settled:
        """Turn what was held into what the job cost."""
        return Settled(
            settled=await self.settle(request.tenant, request.job_id, request.cost_usd, request.unsettled_usd)
        )

    async def settle(
        self, tenant: str, job_id: str, cost_usd: Decimal | None, unsettled_usd: Decimal = Decimal(0)
    ) -> bool:
        """Turn the reservation into what the job cost; only the first call changes anything."""
        return await self._settlements.ask(tenant, (job_id, cost_usd, unsettled_usd))

    async def _settle(self, tenant: str, asked: Sequence[tuple[str, Decimal | None, Decimal]]) -> list[bool]:
        jobs, costs, unsure = map(list, zip(*asked, strict=True))
        rows = await self._store.fetch(tenant, self._store.sql.settle, tenant, jobs, costs, unsure, self._moment())
        settled = {row["job_id"] for row in rows}
        return [job_id in settled for job_id in jobs]

    async def on_hold_charge(self, request: HoldCharge) -> Extended:
        """Hold money for a call outside of any job, if every hard budget that counts it has room."""
        await self._put_charge(request.tenant, request.charge_id)
        extended = await self._holds.ask(request.tenant, (request.charge_id, request.usd, None, 0, False))
        assert extended is not None
        return extended

    async def on_charge(self, request: ChargeBudgets) -> Settled:
        """Count what a call outside of any job cost, in every budget that counts it."""
        await self._put_charge(request.tenant, request.charge_id)
        return Settled(
            settled=await self.settle(request.tenant, request.charge_id, request.cost_usd, request.unsettled_usd)
        )

    async def settle_lost(self, *, after_s: float, at_most: int) -> int:
        """Count what was held for calls of tools that nobody counted, as money that they may have cost.

        Their gateway was killed in between, and no client asked again. Returns how many there were.
        """
        sql, moment = self._store.sql, self._moment()
        async with self._store.system() as conn:
            await conn.execute(sql.forget_refused_charges, moment, after_s)
            lost = await conn.fetch(sql.lost_charges, moment, after_s, at_most)
        for row in lost:
            await self.settle(row["tenant"], row["charge_id"], Decimal(0), row["reserved_usd"])
        return len(lost)

    async def _put_charge(self, tenant: str, charge_id: str) -> None:
        await self._store.execute(tenant, self._store.sql.put_charge, tenant, charge_id, self._moment())

    async def on_release(self, request: ReleaseBudget) -> Released:
        """Give back what a parked job holds and has not spent."""
        given = await self._store.fetchval(
            request.tenant, self._store.sql.release, request.tenant, request.job_id, request.spent_usd, request.seq
        )
        return Released(released_usd=given)

    async def raise_cap(self, tenant: str, job_id: str, budget_usd: Decimal) -> None:
        """Change what a job may spend."""
        await self._store.execute(tenant, self._store.sql.raise_cap, tenant, job_id, budget_usd)

    async def on_list(self, request: ListBudgets) -> BudgetList:
        """Say what a tenant's budgets are and how much of them is used."""
        budgets = await self._budgets(request.tenant, request.name)
        chosen = await self._store.fetchrow(request.tenant, self._store.sql.get_settings, request.tenant)
        own_usd = read_settings(chosen["settings"] if chosen else None).max_cost_usd
        return BudgetList(budgets=tuple(budgets), job_budget_usd=own_usd or self._job_budget_usd)

    async def _budgets(self, tenant: str, name: str | None) -> list[Budget]:
        rows = await self._store.fetch(tenant, self._store.sql.list_budgets, tenant, name, self._moment())
        return [_budget(row) for row in rows]

    async def on_put(self, request: PutBudget) -> Budget:
        """Save a budget, and look for jobs that can go on now."""
        tenant, name, config = request.tenant, request.name, request.config
        if not await self._store.fetchval(tenant, self._store.sql.is_tenant, tenant):
            raise NotFound("tenant", tenant)
        if await self._store.fetchval(tenant, self._store.sql.count_budgets, tenant, name) >= BUDGETS_MAX:
            raise Reject(f"{BUDGETS_MAX} budgets are enough: delete one first", code="too_many_budgets", status=409)
        columns = (config.limit_usd, config.window, config.timezone, config.agent, config.user_id, config.hard)
        thresholds = sorted(set(config.alerts))
        try:
            await self._store.execute(
                tenant, self._store.sql.put_budget, tenant, name, *columns, thresholds, self._moment()
            )
        except asyncpg.InvalidParameterValueError as error:
            raise Reject(
                f"{error}: use an IANA name such as Europe/Berlin", code="unknown_timezone", status=422
            ) from None
        self._changed()
        [saved] = await self._budgets(tenant, name)
        return saved

    async def on_delete(self, request: DeleteBudget) -> BudgetDeleted:
        """Delete a budget, and look for jobs that can go on now."""
        status = await self._store.execute(request.tenant, self._store.sql.delete_budget, request.tenant, request.name)
        self._changed()
        return BudgetDeleted(deleted=not status.endswith(" 0"))


def _extended(row: Record) -> Extended:
    return Extended(
        granted=row["granted"],
        held_usd=row["held"],
        left_usd=row["room"],
        limited_by=row["refused_by"] or "",
        resets_at=row["resets_at"],
    )


def _budget(row: Record) -> Budget:
    used = row["spent_usd"] + row["reserved_usd"] + row["unsettled_usd"]
    each = row["period"] == "job"
    return Budget.model_validate(
        {
            **dict(row),
            "window": row["period"],
            "left_usd": None if each else max(row["limit_usd"] - used, Decimal(0)),
        }
    )
