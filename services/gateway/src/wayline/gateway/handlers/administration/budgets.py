"""Budgets: what may be spent, and how much of it is."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Path, Response

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
from wayline.gateway.conditions import IfUnchanged, entity_tag
from wayline.gateway.handlers.shared.changing import Changeable, tagged
from wayline.gateway.handlers.shared.deleting import was_there
from wayline.gateway.handlers.shared.dependencies import Admin, Gateway, GatewayDependency, Reader
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails, tags
from wayline.gateway.paging import PageCursor, Paged, PageLimit, page_of
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/budgets", tags=["budgets"], route_class=StrictRoute)

BudgetPath: TypeAlias = Annotated[str, Path(pattern=ids.NAME_PATTERN, examples=["month"])]
NewBudgetPath: TypeAlias = Annotated[BudgetName, Path(examples=["month"])]


class BudgetPage(BudgetList, Paged):
    """A page of a tenant's budgets as they stand, by name."""


@router.get("", responses=fails(400))
async def list_budgets(
    gateway: GatewayDependency, caller: Reader, limit: PageLimit = 100, cursor: PageCursor = None
) -> BudgetPage:
    """Page through the budgets: the limit of each, what is spent, held and left of it, and the alerts of its window."""
    found = await gateway.bus.ask(ListBudgets(tenant=caller.tenant), BudgetList)
    page = page_of(found.budgets, limit=limit, cursor=cursor, key=lambda budget: budget.name)
    return BudgetPage(budgets=page.items, job_budget_usd=found.job_budget_usd, next_cursor=page.next_cursor)


@router.get("/{name}", responses=tags(404))
async def get_budget(name: BudgetPath, gateway: GatewayDependency, caller: Reader, response: Response) -> Budget:
    """Return one budget."""
    found = await _budget(gateway, caller, name)
    return tagged(response, found, _tag(found))


@router.put("/{name}", responses=tags(404, 409, 412, 413))
async def put_budget(
    *,
    name: NewBudgetPath,
    config: BudgetConfig,
    gateway: GatewayDependency,
    caller: Admin,
    condition: IfUnchanged,
    response: Response,
) -> Budget:
    """Save a budget. It counts what its present window has seen; raising it wakes the jobs that waited for it."""
    async with BUDGET.changing(gateway, caller, name, condition):
        saved = await gateway.bus.ask(PutBudget(tenant=caller.tenant, name=name, config=config), Budget)
    return tagged(response, saved, _tag(saved))


@router.delete("/{name}", responses=fails(404, 412))
async def delete_budget(
    name: BudgetPath, gateway: GatewayDependency, caller: Admin, condition: IfUnchanged
) -> BudgetDeleted:
    """Delete a budget: jobs that waited for it go on."""
    async with BUDGET.changing(gateway, caller, name, condition):
        deleted = await gateway.bus.ask(DeleteBudget(tenant=caller.tenant, name=name), BudgetDeleted)
    return was_there(deleted, "budget", name)


async def _budget(gateway: Gateway, caller: Caller, name: str) -> Budget:
    found = await gateway.bus.ask(ListBudgets(tenant=caller.tenant, name=name), BudgetList)
    if not found.budgets:
        raise NotFound("budget", name)
    return found.budgets[0]


def _tag(budget: Budget) -> str:
    return entity_tag(budget.name, budget.model_dump(mode="json", include=set(BudgetConfig.model_fields)))


BUDGET = Changeable("budget", _budget, _tag)
