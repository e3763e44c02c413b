"""How much of a model's window a job uses: by its complexity where its agent asks for that, else all of it. Pure."""

from __future__ import annotations

from wayline.journal import Job
from wayline.routing import BUDGETS, ContextBudget

STEP_SHARE = 3
"""The results of one step take no more than one part in so many of the scratchpad, and no more than that is written."""
RESULT_TOKENS_MIN = 200
"""What a result is shown of in any case."""


def context_budget(job: Job) -> ContextBudget | None:
    """Return the budget of a job's calls; None: its model's window alone bounds them."""
    config, limits, route = job.routing.config, job.routing.limits, job.routing.route
    if config is None or config.context != "budgeted":
        return None
    if limits is not None and limits.context_level is not None:
        return BUDGETS[limits.context_level]
    # The logs of earlier builds name a level only where the router chose among slots.
    return BUDGETS[route.complexity.level if route is not None and route.complexity is not None else "moderate"]


def prompt_window(job: Job) -> int:
    """Return the tokens within which a job's prompts are kept by compaction."""
    budget, window = context_budget(job), job.routing.card.context_window
    return window if budget is None else min(window, budget.total - budget.response)


def history_window(job: Job) -> int | None:
    """Return the tokens past which what was said before the job is summarised; None: no such bound.

    The logs of earlier builds record no level: their jobs keep the bound that they had, the scratchpad's.
    """
    budget, limits = context_budget(job), job.routing.limits
    return budget.history if budget is not None and limits is not None and limits.context_level is not None else None


def scratchpad_window(job: Job) -> int | None:
    """Return the tokens of messages past which a conversation is compacted; None: no such bound.

    They are those of the job itself, or all of them where what was said before has no bound of its own.
    """
    budget = context_budget(job)
    if budget is None:
        return None
    pooled = budget.history if job.conversation.history and history_window(job) is None else 0
    return budget.scratchpad + pooled


def answer_room(job: Job, wanted: int) -> int:
    """Return the most tokens that a call may answer with."""
    budget = context_budget(job)
    return min(wanted, budget.response) if budget else wanted


def result_room(job: Job, wanted: int) -> int:
    """Return the most tokens that one result of the step under way is shown with."""
    budget = context_budget(job)
    if budget is None:
        return wanted
    share = budget.scratchpad // STEP_SHARE // max(1, len(job.tools.calls))
    return max(RESULT_TOKENS_MIN, min(wanted, share))
