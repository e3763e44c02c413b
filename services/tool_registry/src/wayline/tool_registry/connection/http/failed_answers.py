"""Say with which status a server has refused a request: the MCP library only says that it was an error.

A module of its own, because httpx2 takes a while to import.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from http import HTTPStatus

import httpx2
from mcp_types import INTERNAL_ERROR, METHOD_NOT_FOUND

from wayline.guarded_http import asked_wait_s
from wayline.tool_registry.calls.server_answers import Answer, Unreadable, Verdict, answer_in, message_in
from wayline.tool_registry.connection.http.asked_messages import REFUSED_LOGIN, AskedMessage
from wayline.tool_registry.connection.readable_messages import AFTER_S, Proof, own_error

READ_MAX_BYTES = 1024 * 1024
"""Of an error that a server explains itself."""
KEY_MISSING = "it needs a login (`wayline mcp add … --oauth`) or its key in `headers`"
KEY_REFUSED = "its key in `headers` is missing or wrong"
UNKNOWN_SESSION = re.compile(
    r"(no valid|not? (a )?valid|invalid|unknown|missing|expired|no such).{0,20}session"
    r"|session.{0,20}(not found|unknown|invalid|expired|terminated|does not exist|not valid)",
    re.IGNORECASE,
)
"""How servers say so that have restarted, many of them with 400."""
LATE_STATUSES = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, 499})
"""Below 500, and yet no refusal: what stands before the server waited in vain."""


class FailedAnswer(httpx2.AsyncByteStream):
    """The body of a failed answer: the server's own JSON-RPC error, else one that names the status."""

    def __init__(
        self, inner: httpx2.AsyncByteStream, answer: httpx2.Response, asked: AskedMessage, *, is_read: bool
    ) -> None:
        """Take the server's answer to a message; its body is read where it may be an error in JSON."""
        self._inner = inner
        self._answer = answer
        self._asked = asked
        self._is_read = is_read and answer.headers.get("Content-Type", "").lower().startswith("application/json")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        said = await self._read() if self._is_read else Answer(Verdict.UNKNOWN)
        yield self._explained(said)

    async def aclose(self) -> None:
        """Close the server's body."""
        await self._inner.aclose()

    def _explained(self, said: Answer) -> bytes:
        answer, call_id = self._answer, self._asked.id
        if (login := answer.extensions.get(REFUSED_LOGIN)) is not None:
            is_login = answer.status_code == HTTPStatus.UNAUTHORIZED
            return own_error(Proof.NEEDS_LOGIN if is_login else Proof.NEEDS_SCOPE, login, call_id=call_id)
        if self._asked.in_session and self._ends_session(said):
            words = said.words or "the server does not know its session any more"
            return own_error(Proof.SESSION_ENDED, words, call_id=call_id)
        if answer.status_code == HTTPStatus.TOO_MANY_REQUESTS:
            words = self._words(said) if said.words else why_failed(answer)
            return own_error(Proof.BUSY, words, call_id=call_id, data={AFTER_S: asked_wait_s(answer.headers)})
        if said.verdict is Verdict.REFUSED:
            return own_error(Proof.REFUSED, self._words(said), call_id=call_id, code=said.code, data=said.data)
        # With the codes that the library gives such failures.
        code = METHOD_NOT_FOUND if answer.status_code == HTTPStatus.NOT_FOUND else INTERNAL_ERROR
        refused = answer.status_code < HTTPStatus.INTERNAL_SERVER_ERROR and answer.status_code not in LATE_STATUSES
        proof = Proof.REFUSED if refused and said.verdict is Verdict.UNKNOWN else Proof.UNKNOWN
        return own_error(proof, why_failed(answer), call_id=call_id, code=code)

    def _ends_session(self, said: Answer) -> bool:
        """Return whether the server does not know the session: by the protocol's status, or in words with 400.

        An error under the call's own id is the tool's, such as of a session that has expired elsewhere.
        """
        if self._answer.status_code != HTTPStatus.BAD_REQUEST:
            return self._answer.status_code == HTTPStatus.NOT_FOUND
        return said.id != self._asked.id and UNKNOWN_SESSION.search(said.words) is not None

    def _words(self, said: Answer) -> str:
        """Return a server's own words; they alone do not say that a key is wanted, nor, without a code, what failed."""
        if said.code and self._answer.status_code != HTTPStatus.UNAUTHORIZED:
            return said.words
        return f"{why_failed(self._answer)}; it says: {said.words}"

    async def _read(self) -> Answer:
        body = bytearray()
        try:
            async for part in self._inner:
                body += part
                if len(body) > READ_MAX_BYTES:
                    return Answer(Verdict.UNKNOWN)
            return answer_in(message_in(bytes(body)))
        except (httpx2.TransportError, Unreadable):
            return Answer(Verdict.UNKNOWN)


def why_failed(answer: httpx2.Response) -> str:
    """Name the status of an answer, and what to do about it where that is known."""
    try:
        phrase = HTTPStatus(answer.status_code).phrase
    except ValueError:
        phrase = ""
    why = f"the server answered {answer.status_code} {phrase}".rstrip()
    if answer.status_code == HTTPStatus.TOO_MANY_REQUESTS and (after_s := asked_wait_s(answer.headers)) is not None:
        return f"{why}, and asks to be left alone for {after_s:g} s"
    if answer.status_code != HTTPStatus.UNAUTHORIZED:
        return why
    return f"{why}: {KEY_MISSING if 'WWW-Authenticate' in answer.headers else KEY_REFUSED}"
