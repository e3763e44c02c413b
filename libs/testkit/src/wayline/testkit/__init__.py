"""Real NATS and Postgres fixtures, and fault injectors."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wayline.testkit.databases import Database
    from wayline.testkit.platform import Platform
    from wayline.testkit.waiting import known_to_server, until

__all__ = ["Database", "Platform", "known_to_server", "until"]

_MODULES = {"Database": "databases", "Platform": "platform", "known_to_server": "waiting", "until": "waiting"}


def __getattr__(name: str) -> Any:
    # Imported when first asked for: a process that serves a few tools does not need the platform.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value
