"""Decide what an exception of the MCP library means for a call: nothing happened, an unknown outcome, or a refusal."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from wayline.tool_registry.adapters.oauth import NEEDS_SCOPE
from wayline.tool_registry.errors import AnswerLost, CallError, NeedsLogin, NotBegun, TimedOut, Unusable
from wayline.tool_registry.tools.tool_servers import NEEDS_LOGIN

AWAY = -32050
"""Our built-in tools' own error code: what they need is away, and nothing was done."""

SESSION_ENDED = "Session terminated"
"""The library's error when a server does not know our session any more: it restarted, and did not run the call."""


def call_error(error: BaseException, *, timeout_s: float, hide: Callable[[str], str] = str) -> CallError:
    """Turn an exception into one of our four errors, AnswerLost where nothing is certain; `hide` takes secrets out."""
    import httpx2
    import mcp_types as types
    from mcp import MCPError
    from pydantic import ValidationError

    leaves = list(_leaves(error))
    message = hide("; ".join(str(leaf) or type(leaf).__name__ for leaf in leaves))
    if any(isinstance(leaf, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout) for leaf in leaves):
        return NeedsLogin(message) if NEEDS_LOGIN in message else NotBegun(message)
    for leaf in leaves:
        if isinstance(leaf, ValidationError):
            return Unusable("the server's answer is not a tool result")
        if not isinstance(leaf, MCPError):
            continue
        if leaf.code == types.REQUEST_TIMEOUT:
            return TimedOut(after_s=timeout_s)
        if leaf.code == NEEDS_SCOPE and leaf.message.startswith(NEEDS_LOGIN):
            return NeedsLogin(hide(leaf.message))
        if leaf.code == AWAY or leaf.message == SESSION_ENDED:
            return NotBegun(hide(leaf.message))
        if leaf.code in _refusals():
            return Unusable(hide(leaf.message))
    return AnswerLost(message)


def is_lost(error: BaseException) -> bool:
    """Return whether the connection is of no use any more."""
    import httpx2
    import mcp_types as types
    from mcp import MCPError

    return any(
        isinstance(leaf, httpx2.TransportError)
        or (isinstance(leaf, MCPError) and (leaf.code == types.CONNECTION_CLOSED or leaf.message == SESSION_ENDED))
        for leaf in _leaves(error)
    )


def refusal(error: BaseException) -> str | None:
    """Return the error that a server answered with, whatever its code; None: the server gave no answer."""
    import mcp_types as types
    from mcp import MCPError

    if isinstance(error, MCPError) and error.code != types.REQUEST_TIMEOUT:
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


def _refusals() -> frozenset[int]:
    import mcp_types as types

    return frozenset(
        {
            types.METHOD_NOT_FOUND,
            types.INVALID_PARAMS,
            types.HEADER_MISMATCH,
            types.UNSUPPORTED_PROTOCOL_VERSION,
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            types.URL_ELICITATION_REQUIRED,
        }
    )
