"""A program, its calls, and how a turn of it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal

from wayline.sandbox.stubs import Stubs


@dataclass(frozen=True)
class Program:
    """A program and all that its run depends on, apart from the outcomes of its calls."""

    code: str
    stubs: Stubs
    now: datetime
    """What its clocks show, for as long as it runs."""
    seed: str
    """Of its random numbers."""
    tenant: str = ""
    """Whose share of the workers it takes."""

    @cached_property
    def hash(self) -> str:
        """Return what tells it apart from every other program."""
        parts = (self.code, self.stubs.text, self.now.isoformat(), self.seed)
        return sha256("".join(f"{len(part.encode())}:{part}" for part in parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """A tool that a program wants called. Nothing has been done."""

    number: int
    """From 1, in the order in which the program asks."""
    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Returned:
    """A call's result, as the program sees it."""

    value: Any


@dataclass(frozen=True, slots=True)
class Raised:
    """A call that failed, as the exception that the program sees."""

    message: str
    kind: Literal["RuntimeError", "TimeoutError", "ValueError", "PermissionError"] = "RuntimeError"


Answer = Returned | Raised


@dataclass(frozen=True, slots=True)
class Suspended:
    """A program that waits for its calls. It holds no process: this is all of it."""

    dump: bytes = field(repr=False)
    pending: tuple[ProgramCall, ...]
    """Its calls without an answer, in order."""
    handles: Mapping[int, int]
    """The interpreter's own id of each pending call, by its number."""
    asked: int
    """How many calls it has asked for."""
    printed: str = ""


@dataclass(frozen=True, slots=True)
class Completed:
    """A program that has ended with a value."""

    value: Any
    """As JSON."""
    printed: str
    asked: int
    abandoned: tuple[int, ...] = ()
    """The numbers of calls whose answers it did not wait for."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A program that has ended without a value."""

    reason: Literal["rejected", "raised", "stopped"]
    """`rejected`: it does not pass the type check, and nothing of it has run; `stopped`: it broke a limit."""
    message: str
    """For the model that wrote it."""
    printed: str = ""
    asked: int = 0
    abandoned: tuple[int, ...] = ()


Turn = Suspended | Completed | Failed
"""How far a program comes without an answer."""
