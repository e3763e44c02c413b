"""What an exception says about a call."""

from __future__ import annotations

import httpx2
import mcp_types as types
import pytest
from mcp import MCPError

from wayline.tool_registry.connection.failures import AWAY, built_in_error, call_error, refusal
from wayline.tool_registry.connection.readable_messages import AFTER_S, MARK, Proof
from wayline.tool_registry.errors import AnswerLost, Busy, LoginRefused, NotBegun, SessionEnded, TimedOut, Unusable

SERVERS = {MARK: Proof.REFUSED}


def marked(proof: Proof, after_s: float | None = None) -> MCPError:
    return MCPError(types.INTERNAL_ERROR, "words", {MARK: proof, AFTER_S: after_s})


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx2.ConnectError("before anything was sent"), NotBegun),
        (ExceptionGroup("", [ExceptionGroup("", [httpx2.ConnectTimeout("slow")])]), NotBegun),
        (marked(Proof.UNSENT), NotBegun),
        (marked(Proof.BUSY, after_s=2), Busy),
        (marked(Proof.REFUSED), Unusable),
        (marked(Proof.NEEDS_LOGIN), LoginRefused),
        (marked(Proof.NEEDS_SCOPE), LoginRefused),
        (marked(Proof.SESSION_ENDED), SessionEnded),
        (marked(Proof.UNKNOWN), AnswerLost),
        (marked(Proof.LOST), AnswerLost),
        (MCPError(types.REQUEST_TIMEOUT, "timed out"), TimedOut),
        (ExceptionGroup("", [MCPError(types.REQUEST_TIMEOUT, "timed out")]), TimedOut),
        (MCPError(types.CONNECTION_CLOSED, "closed"), AnswerLost),
        (MCPError(types.INTERNAL_ERROR, "Server returned an error response"), AnswerLost),
        (MCPError(types.INVALID_REQUEST, "server answered a request with 202 Accepted"), AnswerLost),
        (httpx2.ReadError("reset"), AnswerLost),
        (RuntimeError("anything else"), AnswerLost),
    ],
    ids=repr,
)
def test_only_our_own_code_says_that_a_call_never_began(error, kind):
    assert type(call_error(error, timeout_s=1)) is kind


@pytest.mark.parametrize("code", [AWAY, -32051, types.REQUEST_TIMEOUT, types.CONNECTION_CLOSED, types.INTERNAL_ERROR])
@pytest.mark.parametrize("words", ["Session terminated", "it needs authorization: log in", "No customer named Smyth"])
def test_a_servers_error_of_any_code_and_words_is_its_refusal(code, words):
    assert type(call_error(MCPError(code, words, SERVERS), timeout_s=1)) is Unusable


@pytest.mark.parametrize("proof", Proof)
def test_a_server_that_refuses_has_answered(proof):
    refused = (Proof.REFUSED, Proof.NEEDS_LOGIN, Proof.NEEDS_SCOPE, Proof.BUSY)

    assert refusal(marked(proof)) == ("words" if proof in refused else None)


def test_a_tool_of_our_own_may_say_that_nothing_was_done():
    assert type(built_in_error(MCPError(AWAY, "retrieval is away"), timeout_s=1)) is NotBegun
