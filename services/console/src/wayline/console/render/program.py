"""Programs that models write: in code mode a call has one, and makes further calls. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def program_of(arguments: Any) -> str:
    """Return the program that a call was given; empty: it was given none."""
    code = arguments.get("code") if isinstance(arguments, Mapping) and len(arguments) == 1 else None
    return code if isinstance(code, str) else ""
