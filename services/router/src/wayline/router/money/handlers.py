"""Holds, counts and gives back money of jobs and calls, and keeps budgets."""

from __future__ import annotations

from collections.abc import Callable

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
)
from wayline.contracts.errors import NotFound, Reject
from wayline.router.money.budget_table import BudgetTable
from wayline.router.tenants.known_tenants import KnownTenants

BUDGETS_MAX = 100
"""Budgets of one tenant: each decision reads them all."""


class MoneyHandlers:
    """Answers requests about money; `changed` is called after a change of a budget, for jobs that can go on now."""

    def __init__(self, table: BudgetTable, *, tenants: KnownTenants, changed: Callable[[], None]) -> None:
        self._table = table
        self._tenants = tenants
        self._changed = changed

    async def on_extend(self, request: ExtendBudget) -> Extended:
        """Hold more for a job, if its own budget and every hard one that counts it have room."""
        extended = await self._table.hold(
            request.tenant,
            request.job_id,
            total_usd=request.total_usd,
            cap_usd=request.cap_usd,
            seq=request.seq,
            waits=request.waits,
        )
        if extended is None:
            raise NotFound("reservation of job", request.job_id)
        return extended

    async def on_hold_charge(self, request: HoldCharge) -> Extended:
        """Hold money for a call outside of any job, if every hard budget that counts it has room."""
        await self._table.put_charge(request.tenant, request.charge_id)
        extended = await self._table.hold(request.tenant, request.charge_id, total_usd=request.usd)
        assert extended is not None
        return extended

    async def on_charge(self, request: ChargeBudgets) -> Settled:
        """Count what a call outside of any job cost, in every budget that counts it."""
        tenant, charge_id = request.tenant, request.charge_id
        await self._table.put_charge(tenant, charge_id)
        return Settled(settled=await self._table.settle(tenant, charge_id, request.cost_usd, request.unsettled_usd))

    async def on_release(self, request: ReleaseBudget) -> Released:
        """Give back what a parked job holds and has not spent."""
        given = await self._table.release(request.tenant, request.job_id, spent_usd=request.spent_usd, seq=request.seq)
        return Released(released_usd=given)

    async def on_list(self, request: ListBudgets) -> BudgetList:
        """Return what a tenant's budgets are and how much of them is used."""
        budgets = await self._table.list(request.tenant, request.name)
        return BudgetList(budgets=tuple(budgets), job_budget_usd=await self._table.job_budget_usd(request.tenant))

    async def on_put(self, request: PutBudget) -> Budget:
        """Save a budget, and look for jobs that can go on now."""
        await self._tenants.require(request.tenant)
        if await self._table.count_others(request.tenant, request.name) >= BUDGETS_MAX:
            raise Reject(f"{BUDGETS_MAX} budgets are enough: delete one first", code="too_many_budgets", status=409)
        saved = await self._table.put(request.tenant, request.name, request.config)
        self._changed()
        return saved

    async def on_delete(self, request: DeleteBudget) -> BudgetDeleted:
        """Delete a budget, and look for jobs that can go on now."""
        deleted = await self._table.delete(request.tenant, request.name)
        self._changed()
        return BudgetDeleted(deleted=deleted)
