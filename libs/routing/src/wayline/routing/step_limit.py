"""How many steps a job may take: the cap, or a share of it by how complex the job looks. Pure."""

from __future__ import annotations

from typing import Literal

from wayline.contracts.agents import AgentConfig
from wayline.contracts.jobs import SubmitJob

Level = Literal["simple", "moderate", "complex"]

STEP_PERCENT: dict[Level, int] = {"simple": 60, "moderate": 80, "complex": 100}
"""Of the cap. A simple job that still calls tools after three of five steps has mostly lost its way; a complex one is
why the cap is where it is."""
ADAPTED_STEPS_MIN = 2
"""One step to call a tool and one to answer from what it returned."""


def adapts(job: SubmitJob, config: AgentConfig) -> bool:
    """Return whether a job's step limit follows its complexity: not where the job itself names one, nor for a fork.

    A fork counts the steps that it shares: a smaller limit could end it where it begins.
    """
    return config.adapt_steps and job.options.max_steps is None and job.fork is None


def adapted(cap: int, level: Level | None) -> int:
    """Return the steps that a job of this complexity may take of so many; None: its limit does not follow it."""
    if level is None:
        return cap
    # Rounded up.
    return min(cap, max(ADAPTED_STEPS_MIN, -(-cap * STEP_PERCENT[level] // 100)))
