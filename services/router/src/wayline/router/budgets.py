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
from wayline.store import Record, Store, Together

BUDGETS_MAX = 100
"""Budgets of one tenant: each decision reads them all."""
HOLDS_APART_S = 0.01
"""A call waits for its hold, so no longer than a statement takes anyway."""
SETTLEMENTS_APART_S = 0.1
"""Nobody waits for a settlement: its job has ended and its result is out."""

Moment = Callable[[], datetime | None]


def database_time() -> None:
    """The moment that windows are chosen by: the database's own clock, one for all routers."""


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
        self._holds = Together(self._hold, apart_s=HOLDS_APART_S)
        self._settlements = Together(self._settle, apart_s=SETTLEMENTS_APART_S)

    async def on_extend(self, asked: ExtendBudget) -> Extended:
        """Hold more for a job, if its own budget and every hard one that counts it have room."""
        ask = asked.job_id, asked.total_usd, asked.cap_usd, asked.seq, asked.waits
        said = await self._holds.ask(asked.tenant, ask)
        if said is None:
            raise NotFound("reservation of job", asked.job_id)
        return said

    async def _hold(
        self, tenant: str, asked: Sequence[tuple[str, Decimal | None, Decimal | None, int, bool]]
    ) -> list[Extended | None]:
        columns = map(list, zip(*asked, strict=True))
        rows = await self._store.fetch(tenant, self._store.sql.hold, tenant, *columns, self._moment())
        said = {row["nth"]: _extended(row) for row in rows}
        return [said.get(number) for number in range(1, len(asked) + 1)]

    async def on_settle(self, asked: SettleJob) -> Settled:
        """Turn what was held into what the job cost."""
        return Settled(settled=await self.settle(asked.tenant, asked.job_id, asked.cost_usd, asked.unsettled_usd))

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

    async def on_hold_charge(self, asked: HoldCharge) -> Extended:
        """Hold money for a call outside of any job, if every hard budget that counts it has room."""
        await self._put_charge(asked.tenant, asked.charge_id)
        said = await self._holds.ask(asked.tenant, (asked.charge_id, asked.usd, None, 0, False))
        assert said is not None
        return said

    async def on_charge(self, asked: ChargeBudgets) -> Settled:
        """Count what a call outside of any job cost, in every budget that counts it."""
        await self._put_charge(asked.tenant, asked.charge_id)
        return Settled(settled=await self.settle(asked.tenant, asked.charge_id, asked.cost_usd, asked.unsettled_usd))

    async def _put_charge(self, tenant: str, charge_id: str) -> None:
        await self._store.execute(tenant, self._store.sql.put_charge, tenant, charge_id, self._moment())

    async def on_release(self, asked: ReleaseBudget) -> Released:
        """Give back what a parked job holds and has not spent."""
        given = await self._store.fetchval(
            asked.tenant, self._store.sql.release, asked.tenant, asked.job_id, asked.spent_usd, asked.seq
        )
        return Released(released_usd=given)

    async def raise_cap(self, tenant: str, job_id: str, budget_usd: Decimal) -> None:
        """Change what a job may spend."""
        await self._store.execute(tenant, self._store.sql.raise_cap, tenant, job_id, budget_usd)

    async def on_list(self, asked: ListBudgets) -> BudgetList:
        """Say what a tenant's budgets are and how much of them is used."""
        budgets = await self._budgets(asked.tenant, asked.name)
        return BudgetList(budgets=tuple(budgets), job_budget_usd=self._job_budget_usd)

    async def _budgets(self, tenant: str, name: str | None) -> list[Budget]:
        rows = await self._store.fetch(tenant, self._store.sql.list_budgets, tenant, name, self._moment())
        return [_budget(row) for row in rows]

    async def on_put(self, asked: PutBudget) -> Budget:
        """Save a budget, and look whether somebody can go on now."""
        tenant, name, config = asked.tenant, asked.name, asked.config
        if not await self._store.fetchval(tenant, self._store.sql.is_tenant, tenant):
            raise NotFound("tenant", tenant)
        if await self._store.fetchval(tenant, self._store.sql.count_budgets, tenant, name) >= BUDGETS_MAX:
            raise Reject(f"{BUDGETS_MAX} budgets are enough: delete one first", code="too_many_budgets", status=409)
        said = (config.limit_usd, config.window, config.timezone, config.agent, config.user_id, config.hard)
        thresholds = sorted(set(config.alerts))
        try:
            await self._store.execute(
                tenant, self._store.sql.put_budget, tenant, name, *said, thresholds, self._moment()
            )
        except asyncpg.InvalidParameterValueError as error:
            raise Reject(
                f"{error}: use an IANA name such as Europe/Berlin", code="unknown_timezone", status=422
            ) from None
        self._changed()
        [saved] = await self._budgets(tenant, name)
        return saved

    async def on_delete(self, asked: DeleteBudget) -> BudgetDeleted:
        """Take a budget away, and look whether somebody can go on now."""
        status = await self._store.execute(asked.tenant, self._store.sql.delete_budget, asked.tenant, asked.name)
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
