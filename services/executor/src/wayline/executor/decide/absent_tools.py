"""Find the servers whose tools an agent may use and a listing lacks: it is waited for, or its job says so. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wayline.contracts.tools import ServerAway

SEPARATOR = "__"
"""Between the name of a server and that of its tool."""
WILD = "*?["


def absent_servers(patterns: Sequence[str], away: Iterable[ServerAway]) -> tuple[ServerAway, ...]:
    """Return the servers that are away, of which no tool is listed, and of which a pattern may mean one."""
    return tuple(one for one in away if not one.known and any(_may_mean(pattern, one.name) for pattern in patterns))


def worth_waiting(patterns: Sequence[str], away: Iterable[ServerAway]) -> tuple[str, ...]:
    """Return the names of absent servers that may be there soon.

    One that was tried and failed is waited for only where the agent names it: `*` would wait for every broken server.
    """
    return tuple(one.name for one in absent_servers(patterns, away) if not one.tried or is_named(patterns, one.name))


def is_named(patterns: Iterable[str], server: str) -> bool:
    """Return whether a pattern means tools of just this server."""
    return any(pattern.startswith(f"{server}{SEPARATOR}") for pattern in patterns)


def began_without(patterns: Iterable[str], absent: Iterable[str]) -> str | None:
    """Return what a job says in its result that began without tools that its agent names; None: it had all."""
    named = ", ".join(name for name in absent if is_named(patterns, name))
    return f"the job began without the tools of {named}: not reached at that time" if named else None


def _may_mean(pattern: str, server: str) -> bool:
    prefix = f"{server}{SEPARATOR}"
    literal = pattern[: next((at for at, char in enumerate(pattern) if char in WILD), len(pattern))]
    return literal.startswith(prefix) or (len(literal) < len(pattern) and prefix.startswith(literal))
