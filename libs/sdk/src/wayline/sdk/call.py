"""What a tool's function may ask for, and the errors it may raise."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Call:
    """The call that runs: a parameter annotated with this class is given it, and is no argument of the tool."""

    key: str
    """The same at each repeat of one call: what makes an effect happen once."""
    tenant: str
    job_id: str
    step: int
    user_id: str | None
    deadline: datetime
    """After it nobody waits for the result."""


class ToolFailed(Exception):
    """The tool could not do what it was asked: the model reads the message."""


class ToolsRefused(Exception):
    """The registry does not offer these tools: the message says which and why."""
