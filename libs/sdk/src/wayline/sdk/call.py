"""The call that runs, as the function of a tool sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic_core import CoreSchema, core_schema

NoteProgress = Callable[[float, float | None, str], None]


def _nothing(done: float, total: float | None, message: str) -> None:
    """Pass over how far a call is, where nothing hears it."""


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
    """After it nobody waits for the result: it is the end of the tool's `timeout_s`, or of its job."""

    note_progress: NoteProgress = field(default=_nothing, repr=False, compare=False)

    cancel_signal: asyncio.Event = field(default_factory=asyncio.Event, repr=False, compare=False)

    @property
    def cancelled(self) -> bool:
        """Return whether the call was cancelled with its job, or its time is over: a long tool looks, and ends early.

        What it returns then still counts. It may be asked on any thread.
        """
        return self.cancel_signal.is_set()

    async def until_cancelled(self) -> None:
        """Wait until the call is cancelled, or its time is over."""
        await self.cancel_signal.wait()

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Say how far the call is: it is shown with its job, every two seconds at most."""
        self.note_progress(done, total, message)

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, __: Any) -> CoreSchema:
        """Accept calls and nothing that a model wrote: it could act under any key, for any tenant."""
        return core_schema.is_instance_schema(cls)
