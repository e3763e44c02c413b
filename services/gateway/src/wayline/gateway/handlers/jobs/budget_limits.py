"""How far a key may raise what a job may spend."""

from __future__ import annotations

from decimal import Decimal

from wayline.contracts.budgets import Budget, BudgetList, ListBudgets
from wayline.contracts.errors import Conflict
from wayline.contracts.events import JobRouted, JobSubmitted
from wayline.contracts.money import dollars
from wayline.gateway.errors import Forbidden
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.keys import Caller
from wayline.journal import Head, JobLog


async def require_allowed(gateway: Gateway, caller: Caller, job_id: str, head: Head | None, usd: Decimal) -> None:
    """Pass where the job's agent and the budgets for each job allow so much, or the key has the scope `admin`.

    Raises Forbidden, and Conflict while nobody can say what its agent allows.
    """
    if "admin" in caller.scopes:
        return
    if head is None:
        raise Conflict(f"job {job_id!r} has not begun: try again in a moment", code="not_begun")
    first = await JobLog(gateway.bus, caller.tenant, job_id).first()
    submitted = next(event for event in first if isinstance(event, JobSubmitted))
    routed = next((event for event in first if isinstance(event, JobRouted)), None)
    known = await gateway.bus.ask(ListBudgets(tenant=caller.tenant), BudgetList)
    limits = [one.limit_usd for one in known.budgets if _counts(one, submitted)]
    if routed is not None and routed.config.max_cost_usd is not None:
        limits.append(routed.config.max_cost_usd)
    if limits and usd > min(limits):
        raise Forbidden(
            f"its agent and the budgets for each job allow {dollars(min(limits))}: to go beyond needs the scope 'admin'"
        )


def _counts(budget: Budget, submitted: JobSubmitted) -> bool:
    """Return whether a budget bounds each job of this agent and user."""
    job = submitted.job
    return budget.window == "job" and budget.agent in (None, job.agent) and budget.user_id in (None, job.user_id)
