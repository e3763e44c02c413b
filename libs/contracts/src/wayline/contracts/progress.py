"""What a job does right now, in words for a user interface."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from wayline.contracts.base import Frozen

ProgressState = Literal[
    "analyzing",
    "reasoning",
    "executing_tools",
    "observing_results",
    "searching_web",
    "fetching_content",
    "retrieving_memory",
    "saving_memory",
    "generating_response",
]


class Progress(Frozen):
    """One thing that a job begins, is at, or has finished."""

    state: ProgressState
    phase: Literal["started", "running", "completed"] = Field(
        description="`running`: a tool has said how far it is; nothing of that is in the log."
    )
    message: str = Field(default="", description="One line; of a step's results, what they came to.")
    iteration: int = Field(default=0, ge=0, description="The step, from 1; 0: none has begun.")
    of: int | None = Field(default=None, description="The steps that the job may take.")
    tools: tuple[str, ...] = Field(default=(), description="The tools of the step.")
    ok: int | None = Field(default=None, description="The calls of the step that succeeded.")
    total: int | None = Field(default=None, description="The calls of the step.")
