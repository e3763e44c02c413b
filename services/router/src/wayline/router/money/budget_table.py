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

from wayline.chassis.concurrency.each_alone import each_alone
from wayline.contracts.budgets import Budget, BudgetConfig, Extended
from wayline.contracts.errors import Reject
from wayline.router.tenants.settings_in_force import read_settings
from wayline.store import Batcher, Record, Store

HOLDS_APART_S = 0.01
"""A call waits for its hold, so no longer than a statement takes anyway."""
SETTLEMENTS_APART_S = 0.1
"""Nobody waits for a settlement: its job has ended and its result is out."""

Moment = Callable[[], datetime | None]


def database_time() -> None:
    """Return the moment that windows are chosen by: the database's own clock, one for all routers."""


class BudgetTable:
    """A tenant's budgets and what its jobs hold of them."""

    def __init__(self, store: Store, *, job_budget_usd: Decimal, moment: Moment = database_time) -> None:
        self._store = store
        self._job_budget_usd = job_budget_usd
        self._moment = moment
        self._holds = Batcher(self._hold, apart_s=HOLDS_APART_S)
        self._settlements = Batcher(self._settle, apart_s=SETTLEMENTS_APART_S)

    async def hold(
        self,
        tenant: str,
        job_id: str,
        *,
        total_usd: Decimal | None,
        cap_usd: Decimal | None = None,
        seq: int = 0,
        waits: bool = False,
    ) -> Extended | None:
        """Hold so much for a job or a charge, if every hard budget that counts it has room; None: no reservation."""
        return await self._holds.ask(tenant, (job_id, total_usd, cap_usd, seq, waits))

    async def _hold(
        self, tenant: str, asked: Sequence[tuple[str, Decimal | None, Decimal | None, int, bool]]
    ) -> list[Extended | None]:
        columns = map(list, zip(*asked, strict=True))
        rows = await self._store.fetch(tenant, self._store.sql.hold, tenant, *columns, self._moment())
        answers = {row["nth"]: _extended(row) for row in rows}
        return [answers.get(number) for number in range(1, len(asked) + 1)]

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

    async def settle_lost(self, *, after_s: float, at_most: int) -> int:
        """Count what was held for calls of tools that nobody counted, as money that they may have cost.

        Their gateway was killed in between, and no client asked again. Returns how many there were.
        """
        sql, moment = self._store.sql, self._moment()
        async with self._store.system() as conn:
            await conn.execute(sql.forget_refused_charges, moment, after_s)
            lost = await conn.fetch(sql.lost_charges, moment, after_s, at_most)

        async def settle(row: Record) -> None:
            await self.settle(row["tenant"], row["charge_id"], Decimal(0), row["reserved_usd"])

        # One that cannot be settled stays among them: it holds money, and must not hold up the others.
        await each_alone("lost charge", lost, settle)
        return len(lost)

    async def put_charge(self, tenant: str, charge_id: str) -> None:
        """Begin the reservation of a call outside of any job, once."""
        await self._store.execute(tenant, self._store.sql.put_charge, tenant, charge_id, self._moment())

    async def release(self, tenant: str, job_id: str, *, spent_usd: Decimal, seq: int) -> Decimal:
        """Give back what a parked job holds and has not spent; return how much that is."""
        return await self._store.fetchval(tenant, self._store.sql.release, tenant, job_id, spent_usd, seq)

    async def raise_cap(self, tenant: str, job_id: str, budget_usd: Decimal) -> None:
        """Change what a job may spend."""
        await self._store.execute(tenant, self._store.sql.raise_cap, tenant, job_id, budget_usd)

    async def list(self, tenant: str, name: str | None) -> list[Budget]:
        """Return a tenant's budgets with how much of them is used; `name`: this one alone."""
        rows = await self._store.fetch(tenant, self._store.sql.list_budgets, tenant, name, self._moment())
        return [_budget(row) for row in rows]

    async def job_budget_usd(self, tenant: str) -> Decimal:
        """Return what each job of a tenant may spend by default."""
        chosen = await self._store.fetchrow(tenant, self._store.sql.get_settings, tenant)
        return read_settings(chosen["settings"] if chosen else None).max_cost_usd or self._job_budget_usd

    async def count_others(self, tenant: str, name: str) -> int:
        """Return how many budgets a tenant has beside this one."""
        return await self._store.fetchval(tenant, self._store.sql.count_budgets, tenant, name)

    async def put(self, tenant: str, name: str, config: BudgetConfig) -> Budget:
        """Save a budget. Raises Reject for a timezone that Postgres does not know."""
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
        [saved] = await self.list(tenant, name)
        return saved

    async def delete(self, tenant: str, name: str) -> bool:
        """Delete a budget; return whether it was there."""
        status = await self._store.execute(tenant, self._store.sql.delete_budget, tenant, name)
        return not status.endswith(" 0")


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
