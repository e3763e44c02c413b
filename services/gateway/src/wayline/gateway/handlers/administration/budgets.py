"""Budgets: what may be spent, and how much of it is."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Path

from wayline.contracts import ids
from wayline.contracts.budgets import (
    Budget,
    BudgetConfig,
    BudgetDeleted,
    BudgetList,
    BudgetName,
    DeleteBudget,
    ListBudgets,
    PutBudget,
)
from wayline.contracts.errors import NotFound
from wayline.gateway.handlers.shared.deleting import was_there
from wayline.gateway.handlers.shared.dependencies import Admin, GatewayDependency, Reader
from wayline.gateway.openapi import fails
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/budgets", tags=["budgets"], route_class=StrictRoute)

BudgetPath: TypeAlias = Annotated[str, Path(pattern=ids.NAME_PATTERN, examples=["month"])]
NewBudgetPath: TypeAlias = Annotated[BudgetName, Path(examples=["month"])]


@router.get("", responses=fails())
async def list_budgets(gateway: GatewayDependency, caller: Reader) -> BudgetList:
    """Return every budget: its limit, what is spent, held and left of it, and the alerts of its window."""
    return await gateway.bus.ask(ListBudgets(tenant=caller.tenant), BudgetList)


@router.get("/{name}", responses=fails(404))
async def get_budget(name: BudgetPath, gateway: GatewayDependency, caller: Reader) -> Budget:
    """Return one budget."""
    found = await gateway.bus.ask(ListBudgets(tenant=caller.tenant, name=name), BudgetList)
    if not found.budgets:
        raise NotFound("budget", name)
    return found.budgets[0]


@router.put("/{name}", responses=fails(404, 409, 413))
async def put_budget(name: NewBudgetPath, config: BudgetConfig, gateway: GatewayDependency, caller: Admin) -> Budget:
    """Save a budget. It counts what its present window has seen; raising it wakes the jobs that waited for it."""
    return await gateway.bus.ask(PutBudget(tenant=caller.tenant, name=name, config=config), Budget)


@router.delete("/{name}", responses=fails(404))
async def delete_budget(name: BudgetPath, gateway: GatewayDependency, caller: Admin) -> BudgetDeleted:
    """Delete a budget: jobs that waited for it go on."""
    return was_there(
        await gateway.bus.ask(DeleteBudget(tenant=caller.tenant, name=name), BudgetDeleted), "budget", name
    )
