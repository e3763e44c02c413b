"""How a ticket ends: a value, which one place acts on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from wayline.journal import Head


@dataclass(frozen=True, slots=True)
class Acked:
    """Its job needs nothing more of it."""


@dataclass(frozen=True, slots=True)
class GivenBack:
    """It shall come again, here or elsewhere."""

    why: str
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Another holder lives on it, or its last delivery does: no ack, no nak."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Something unexpected happened before a job was held by it."""

    error: Exception
    ended: Head | None = None
    """The last record of its job, where that has ended."""


TicketEnd: TypeAlias = Acked | GivenBack | Forgotten | Failed
