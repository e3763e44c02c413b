"""How much of a model's window a job uses: by its complexity where its agent asks for that, else all of it. Pure."""

from __future__ import annotations

from typing import Literal, NamedTuple

from wayline.journal import Job


class ContextBudget(NamedTuple):
    """The tokens of one call, and what each part of it may take."""

    total: int
    system: int
    history: int
    """What earlier jobs of the session said."""
    message: int
    scratchpad: int
    """What the model said and its tools returned since the user's message."""
    response: int


BUDGETS: dict[Literal["simple", "moderate", "complex"], ContextBudget] = {
    "simple": ContextBudget(20_000, 500, 3_000, 500, 12_000, 4_000),
    "moderate": ContextBudget(30_000, 500, 5_000, 500, 18_000, 6_000),
    "complex": ContextBudget(40_000, 500, 4_000, 500, 28_000, 7_000),
}
STEP_SHARE = 3
"""The results of one step take no more than one part in so many of the scratchpad, and no more than that is written."""
RESULT_TOKENS_MIN = 200
"""What a result is shown of in any case."""


def context_budget(job: Job) -> ContextBudget | None:
    """Return the budget of a job's calls; None: its model's window alone bounds them."""
    config, route = job.routing.config, job.routing.route
    if config is None or config.context != "budgeted":
        return None
    return BUDGETS[route.complexity.level if route is not None and route.complexity is not None else "moderate"]


def prompt_window(job: Job) -> int:
    """Return the tokens within which a job's prompts are kept by compaction."""
    budget, window = context_budget(job), job.routing.card.context_window
    return window if budget is None else min(window, budget.total - budget.response)


def scratchpad_window(job: Job) -> int | None:
    """Return the tokens of messages past which a conversation is compacted; None: no such bound."""
    budget = context_budget(job)
    if budget is None:
        return None
    return budget.scratchpad + (budget.history if job.conversation.history else 0)


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
