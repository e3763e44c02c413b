"""What a job has used and cost after each event, and what it may spend."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal

from wayline.contracts import events as e
from wayline.contracts.money import JobCosts, Usage
from wayline.contracts.tools import RUN_AGENT
from wayline.journal.costs import plus, spent, unsettled
from wayline.journal.state import Changes, Job, ModelTotals


def _submitted(job: Job, event: e.JobSubmitted) -> Changes:
    return {"budget_usd": event.job.options.budget_usd}


def _routed(job: Job, event: e.JobRouted) -> Changes:
    counted = event.held_usd is None and event.left_usd is not None
    return {"held_usd": Decimal(0) if counted else event.held_usd}


def _held(job: Job, event: e.ModelRequested | e.AuxiliaryRequested) -> Changes:
    return {} if event.held_usd is None else {"held_usd": event.held_usd}


def _tool_requested(job: Job, event: e.ToolRequested) -> Changes:
    """Give back what is not spent, before a child is started that shares the job's budget."""
    held_usd, spent_usd = job.money.held_usd, job.money.spent_usd
    if event.tool != RUN_AGENT or held_usd is None or spent_usd is None:
        return {}
    return {"held_usd": min(held_usd, spent_usd)}


def _model_completed(job: Job, event: e.ModelCompleted) -> Changes:
    if event.unsettled is not None:
        return _spared(job, _unsettled(job, event.unsettled))
    called = _called(job)
    paid = _paid(job, event.usage, "model", called, event.cost_usd, saved_usd=event.saved_usd)
    paid["used"] = _used(job, event.usage, called)
    return _spared(job, paid)


def _spared(job: Job, paid: Changes) -> Changes:
    """Add the definitions that the answered call's prompt did not have."""
    tokens = job.model.open.deferred_tokens if job.model.open else 0
    if not tokens:
        return paid
    costs: JobCosts = paid["costs"]
    return paid | {"costs": costs.model_copy(update={"tool_tokens_saved": costs.tool_tokens_saved + tokens})}


def _model_failed(job: Job, event: e.ModelFailed) -> Changes:
    if event.usage is not None:
        return _paid(job, event.usage, "model", _called(job), event.cost_usd)
    return {} if event.unsettled is None else _unsettled(job, event.unsettled)


def _aux_ended(job: Job, event: e.AuxiliaryCompleted | e.AuxiliaryFailed) -> Changes:
    if event.unsettled is not None:
        return _unsettled(job, event.unsettled)
    return {} if event.usage is None else _paid(job, event.usage, "aux", event.purpose, event.cost_usd)


def _tool_completed(job: Job, event: e.ToolCompleted) -> Changes:
    paid = {} if event.cost_usd is None else _paid(job, None, "tool", event.tool, event.cost_usd)
    if event.unsettled is None:
        return paid
    return paid | {"costs": unsettled(paid.get("costs", job.money.costs), event.unsettled)}


def _paid(
    job: Job,
    usage: Usage | None,
    kind: Literal["model", "tool", "aux"],
    name: str,
    usd: Decimal | None,
    *,
    saved_usd: Decimal | None = None,
) -> Changes:
    """Add a call of a known cost; None: its price is unknown."""
    money = job.money
    return {
        "usage": money.usage if usage is None else money.usage + usage,
        "cost_usd": plus(money.cost_usd, usd),
        "costs": spent(money.costs, kind, name, usd, saved_usd=saved_usd),
    }


def _unsettled(job: Job, bounds: e.Bounds) -> Changes:
    """Add a call whose usage never arrived."""
    return {"costs": unsettled(job.money.costs, bounds)}


def _used(job: Job, usage: Usage, called: str) -> tuple[ModelTotals, ...]:
    """Add a call to what the job used of its model in its slot."""
    if job.routing.route is None:
        return job.money.used
    slot, used = job.routing.route.slot, job.money.used
    before = next((one for one in used if one.model == called and one.slot == slot), None)
    estimated = job.model.open.estimated_tokens if job.model.open else 0
    now = (before or ModelTotals(called, slot)).plus(
        usage.output, counted_tokens=usage.input, estimated_tokens=estimated
    )
    return (*(one for one in used if one is not before), now)


def _called(job: Job) -> str:
    """Return the model whose call has ended."""
    if job.model.open is not None:
        return f"{job.model.open.provider}/{job.model.open.model}"
    return job.routing.route.name if job.routing.route else "-"


def _parked(job: Job, event: e.JobParked) -> Changes:
    return {} if event.kept_usd is None else {"held_usd": event.kept_usd}


def _raised(job: Job, event: e.BudgetRaised) -> Changes:
    return {"budget_usd": event.budget_usd}


def _ended(job: Job, _: e.JobCompleted | e.JobFailed | e.JobCancelled) -> Changes:
    """Add a call that was open when the job was given up."""
    asked = job.model.open or job.model.aux_open
    return _unsettled(job, e.Bounds(lower_usd=Decimal(0), upper_usd=asked.worst_usd)) if asked else {}


CHANGES: dict[type[e.Event], Callable[[Job, Any], Changes]] = {
    e.JobSubmitted: _submitted,
    e.JobRouted: _routed,
    e.ModelRequested: _held,
    e.ModelCompleted: _model_completed,
    e.ModelFailed: _model_failed,
    e.AuxiliaryRequested: _held,
    e.AuxiliaryCompleted: _aux_ended,
    e.AuxiliaryFailed: _aux_ended,
    e.ToolRequested: _tool_requested,
    e.ToolCompleted: _tool_completed,
    e.JobParked: _parked,
    e.BudgetRaised: _raised,
    e.JobCompleted: _ended,
    e.JobFailed: _ended,
    e.JobCancelled: _ended,
}
