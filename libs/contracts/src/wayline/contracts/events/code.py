"""Programs that a model writes to call tools: where they wait, and what they did."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from wayline.contracts.base import Frozen
from wayline.contracts.events.event import Event


class CodeCall(Frozen):
    """A call that a program made."""

    number: int = Field(ge=1, description="Its place in the order in which the program asked.")
    call: str = Field(description="Its name in the step: `c1`, `c2` …")
    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    status: Literal["success", "failed", "skipped"]
    size_bytes: int = 0
    duration_ms: float = 0


class CodeCompleted(Event):
    """A program has ended, and this is what it called."""

    type: Literal["code.completed"] = "code.completed"
    step: int
    call: str = Field(description="The call of `run_code`.")
    status: Literal["completed", "rejected", "raised", "stopped", "diverged"] = Field(
        description="`rejected`: a type error, nothing has run; `stopped`: at a limit; `diverged`: it ran again and "
        "did not make the calls that are recorded."
    )
    calls: tuple[CodeCall, ...] = ()


class CodeSuspended(Event):
    """A program waits, and its job is about to be parked or handed back: any executor goes on from the snapshot."""

    type: Literal["code.suspended"] = "code.suspended"
    step: int
    call: str = Field(description="The call of `run_code`.")
    snapshot: str = Field(description="The name of the signed snapshot in the object store.")
    program: str = Field(description="The hash of the program.")
    pending: tuple[str, ...] = Field(default=(), description="Its calls without an outcome: `c1`, `c2` …")
