"""What a command of a rotation came to, and what is to do next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class RotationOutcome(StrEnum):
    """What a command came to."""

    RESTART = "restart"
    """The next step needs every process restarted."""
    WAITING = "waiting"
    """A process uses the old one, or rows are encrypted with it: nothing was taken away."""
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class RotationStep:
    """What a command came to."""

    what: str
    outcome: RotationOutcome
    told: str
    next: str = ""
