"""Note when a call leaves, so that only one that surely did not may be told as one that never began.

A connection that breaks would end the session, and with it the calls beside this one. So a call's own end is an answer.
A module of its own, because httpx2 takes a while to import.
"""

from __future__ import annotations

import httpx2

from wayline.tool_registry.connection.http.asked_messages import ANSWERED_HERE, HAS_LEFT, AskedMessage, asked_message
from wayline.tool_registry.connection.readable_messages import Proof, own_error

NOT_CONNECTED = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class SentCalls(httpx2.AsyncBaseTransport):
    """Sends requests, and makes of a call's broken connection an answer that says what it proves."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        asked = asked_message(request)
        if asked is None or not asked.is_call:
            return await self._inner.handle_async_request(request)
        try:
            answer = await self._inner.handle_async_request(request)
        except NOT_CONNECTED as error:
            # A repeat may follow one that the server acted on.
            return _answered(request, asked, Proof.LOST if HAS_LEFT in request.extensions else Proof.UNSENT, error)
        except httpx2.TransportError as error:
            request.extensions[HAS_LEFT] = True
            return _answered(request, asked, Proof.LOST, error)
        request.extensions[HAS_LEFT] = True
        return answer

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


def _answered(
    request: httpx2.Request, asked: AskedMessage, proof: Proof, error: httpx2.TransportError
) -> httpx2.Response:
    body = own_error(proof, str(error) or type(error).__name__, call_id=asked.id)
    headers = {"Content-Type": "application/json"}
    return httpx2.Response(200, headers=headers, content=body, request=request, extensions={ANSWERED_HERE: True})
