"""Decide what an exception of the MCP library means for a call: nothing happened, an unknown outcome, or a refusal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from wayline.tool_registry.calls.tool_servers import NEEDS_LOGIN
from wayline.tool_registry.connection.readable_messages import AFTER_S, MARK, Proof
from wayline.tool_registry.errors import (
    AnswerLost,
    Busy,
    CallError,
    LoginRefused,
    NeedsLogin,
    NotBegun,
    SessionEnded,
    TimedOut,
    Unusable,
)

AWAY = -32050
"""Our built-in tools' own error code: what they need is away, and nothing was done. Of no other server it counts."""


def call_error(error: BaseException, *, timeout_s: float, hide: Callable[[str], str] = str) -> CallError:
    """Turn an exception into one of our errors, AnswerLost where nothing is certain; `hide` takes secrets out.

    What a server wrote is never proof that nothing happened: only an error that our own code marked is.
    """
    import httpx2
    import mcp_types as types
    from mcp import MCPError

    leaves = list(_leaves(error))
    message = hide("; ".join(str(leaf) or type(leaf).__name__ for leaf in leaves))
    # What breaks while a call is sent is an answer, see `sent_calls`: so this comes before it, as from a login.
    if any(isinstance(leaf, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout) for leaf in leaves):
        return NeedsLogin(message) if NEEDS_LOGIN in message else NotBegun(message)
    for leaf in leaves:
        if not isinstance(leaf, MCPError):
            continue
        match proof_of(leaf):
            case Proof.REFUSED:
                return Unusable(hide(leaf.message))
            case Proof.NEEDS_LOGIN | Proof.NEEDS_SCOPE:
                return LoginRefused(hide(leaf.message))
            case Proof.BUSY:
                return Busy(hide(leaf.message), after_s=leaf.error.data[AFTER_S])
            case Proof.UNSENT:
                return NotBegun(hide(leaf.message))
            case Proof.UNKNOWN | Proof.LOST:
                return AnswerLost(hide(leaf.message))
            case Proof.SESSION_ENDED:
                return SessionEnded(hide(leaf.message))
            case None if leaf.code == types.REQUEST_TIMEOUT:
                return TimedOut(after_s=timeout_s)
            case None:
                pass
    return AnswerLost(message)


def built_in_error(error: BaseException, *, timeout_s: float) -> CallError:
    """Turn what a tool of our own has raised into one of our errors."""
    from mcp import MCPError

    for leaf in _leaves(error):
        if isinstance(leaf, MCPError):
            return NotBegun(leaf.message) if leaf.code == AWAY else Unusable(leaf.message)
    return call_error(error, timeout_s=timeout_s)


def proof_of(error: BaseException) -> Proof | None:
    """Return what an error proves; None: it is the library's own."""
    from mcp import MCPError

    data: Any = error.error.data if isinstance(error, MCPError) else None
    return Proof(data[MARK]) if isinstance(data, dict) and MARK in data else None


def is_lost(error: BaseException) -> bool:
    """Return whether the connection is of no use any more."""
    import httpx2
    import mcp_types as types
    from mcp import MCPError

    return any(
        isinstance(leaf, httpx2.TransportError)
        or proof_of(leaf) in (Proof.LOST, Proof.UNSENT, Proof.SESSION_ENDED, Proof.NEEDS_LOGIN)
        or (isinstance(leaf, MCPError) and leaf.code == types.CONNECTION_CLOSED and proof_of(leaf) is None)
        for leaf in _leaves(error)
    )


def refusal(error: BaseException) -> str | None:
    """Return the error that a server answered with, whatever its code; None: the server gave no answer."""
    from mcp import MCPError

    refused = (Proof.REFUSED, Proof.NEEDS_LOGIN, Proof.NEEDS_SCOPE, Proof.BUSY)
    if isinstance(error, MCPError) and proof_of(error) in refused:
        return error.message
    return None


def reason(error: BaseException) -> str:
    """Put an exception in one line, groups unwrapped."""
    return "; ".join(str(leaf) or type(leaf).__name__ for leaf in _leaves(error))


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
