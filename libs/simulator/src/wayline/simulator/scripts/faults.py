"""What can go wrong with a request."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal

ErrorKind = Literal["rate_limited", "spend_cap", "overloaded", "server_error"]


@dataclass(frozen=True)
class Fault:
    """How one request goes wrong. What is left out goes right."""

    latency_s: float = 0.0
    """Before anything is answered."""
    error: ErrorKind | None = None
    """An error response in the provider's shape; nothing is billed."""
    status: int | None = None
    """In place of the error's usual status: Anthropic also reports a spend cap as a 400."""
    retry_after_s: float | None = None
    """With a 429: sent as Retry-After; None sends none."""
    cut_at_byte: int | None = None
    """Abort the connection after so many bytes of the body."""
    overload_after_events: int | None = None
    """End a stream, whose status was 200, with an error event after so many events."""
    drip_bytes: int | None = None
    """Write the body in pieces of this size."""
    drip_pause_s: float = 0.0
    malformed_arguments: bool = False
    """Tool arguments that are no JSON: a comma stands before the last bracket."""
    unfinished_arguments: bool = False
    """Tool arguments that do not close, although the stop reason says that calls are complete."""
    no_usage: bool = False
    fails_at_end: bool = False
    """Responses: say all of it, then that it has failed, and what it used. No recording has it: as documented."""
    hold: asyncio.Event | None = None
    """Say nothing more until this is set."""
    hold_at: Literal["start", "middle"] = "start"
    """Before the first byte, or after the first words."""


NO_FAULT = Fault()
