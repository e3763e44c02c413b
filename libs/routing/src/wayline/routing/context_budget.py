"""How many tokens the calls of a budgeted agent's job take, by how complex it looks. Pure."""

from __future__ import annotations

from typing import Literal, NamedTuple

from wayline.contracts.agents import AgentConfig
from wayline.llm.tokens import estimate
from wayline.routing.styles import system_prompt

Level = Literal["simple", "moderate", "complex"]


class ContextBudget(NamedTuple):
    """The tokens of one call, and what each part of it may take."""

    total: int
    system: int
    """Style and instructions: a longer text is warned of when its agent is saved."""
    history: int
    """What earlier jobs of the session said: a longer one is summarised before the job's first call."""
    message: int
    """The text of the job's input: a longer one is refused."""
    scratchpad: int
    """What the model said and its tools returned since the user's message: more of it is summarised."""
    response: int


BUDGETS: dict[Level, ContextBudget] = {
    "simple": ContextBudget(20_000, 500, 3_000, 500, 12_000, 4_000),
    "moderate": ContextBudget(30_000, 500, 5_000, 500, 18_000, 6_000),
    "complex": ContextBudget(40_000, 500, 4_000, 500, 28_000, 7_000),
}
SYSTEM_TOKENS_MAX = min(budget.system for budget in BUDGETS.values())


def system_warning(config: AgentConfig) -> str | None:
    """Return what is odd about a budgeted agent's instructions; None: they fit."""
    if config.context != "budgeted":
        return None
    tokens = estimate(system_prompt(config))
    if tokens <= SYSTEM_TOKENS_MAX:
        return None
    return (
        f"its system prompt has about {tokens} tokens, and a budgeted context plans {SYSTEM_TOKENS_MAX} for it: what "
        "is more is taken from its jobs' steps. Shorten the instructions, or set context to window"
    )


def message_problem(text: str, level: Level) -> str | None:
    """Return why an input is too long for a budgeted context; None: it fits."""
    tokens, most = estimate(text), BUDGETS[level].message
    if tokens <= most:
        return None
    return (
        f"the input has about {tokens} tokens of text, and its agent's budgeted context takes {most}: shorten it, "
        "attach the text as a file, or set context to window for the agent"
    )
