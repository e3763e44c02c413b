"""What an exception says about a call."""

from __future__ import annotations

import httpx2
import mcp_types as types
import pytest
from mcp import MCPError

from wayline.tool_registry.adapters.connection.failures import AWAY, SESSION_ENDED, call_error
from wayline.tool_registry.errors import AnswerLost, NotBegun, TimedOut, Unusable


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx2.ConnectError("refused"), NotBegun),
        (ExceptionGroup("", [ExceptionGroup("", [httpx2.ConnectTimeout("slow")])]), NotBegun),
        (MCPError(AWAY, "retrieval is away"), NotBegun),
        (MCPError(types.INVALID_REQUEST, SESSION_ENDED), NotBegun),
        (MCPError(types.REQUEST_TIMEOUT, "timed out"), TimedOut),
        (ExceptionGroup("", [MCPError(types.REQUEST_TIMEOUT, "timed out")]), TimedOut),
        (MCPError(types.INVALID_PARAMS, "no"), Unusable),
        (MCPError(types.METHOD_NOT_FOUND, "Not Found"), Unusable),
        (MCPError(types.CONNECTION_CLOSED, "closed"), AnswerLost),
        (MCPError(types.INTERNAL_ERROR, "Server returned an error response"), AnswerLost),
        (MCPError(types.INVALID_REQUEST, "server answered a request with 202 Accepted"), AnswerLost),
        (httpx2.ReadError("reset"), AnswerLost),
        (RuntimeError("anything else"), AnswerLost),
    ],
    ids=repr,
)
def test_only_a_call_that_surely_never_began_is_not_begun(error, kind):
    assert type(call_error(error, timeout_s=1)) is kind
