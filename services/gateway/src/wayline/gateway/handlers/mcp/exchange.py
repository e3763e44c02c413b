"""One MCP message and its answer, by the MCP library, without a session: any replica can answer any message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any, Final

from fastapi import HTTPException, Request
from fastapi.responses import Response
from fastapi.sse import EventSourceResponse
from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import Message, Receive, Scope, Send

from wayline.contracts.errors import WaylineError
from wayline.contracts.mcp_clients import ClientMessage
from wayline.gateway.event_streams import UNBUFFERED
from wayline.gateway.handlers.mcp import batches
from wayline.gateway.handlers.mcp.call_ids import CallIds
from wayline.gateway.handlers.mcp.cancel_request import cancel
from wayline.gateway.handlers.mcp.client_session import SESSION_HEADER, new_session, session_of
from wayline.gateway.handlers.mcp.session_exchange import McpClient, is_answer, pass_answer_on, serve_message
from wayline.gateway.handlers.mcp.subscriptions import Subscriptions
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.keys import Caller

NO_STREAM: Final = (
    "a stream of changes is for a client with an Mcp-Session-Id that accepts text/event-stream; since protocol "
    "2026-07-28 there is subscriptions/listen in its place"
)

SchemaOf = Callable[[Caller, str], Awaitable[Mapping[str, Any] | None]]
SCHEMA: ContextVar[Mapping[str, Any] | None] = ContextVar("the input schema of the tool that is called", default=None)
"""The library asks for it by the tool's name alone, and two tenants may have tools of one name."""


class Exchanges:
    """Answers MCP messages with a server."""

    def __init__(
        self, gateway: Gateway, server: Server[Any], schema_of: SchemaOf, subscriptions: Subscriptions
    ) -> None:
        self._gateway = gateway
        self._server = server
        self._schema_of = schema_of
        self._subscriptions = subscriptions

    async def answer(self, request: Request, caller: Caller, body: bytes, message: Any) -> Response:
        """Return the answer to one message, which is written while the message is handled."""
        if isinstance(message, list) and batches.is_allowed(request.headers.get(MCP_PROTOCOL_VERSION_HEADER)):
            several: list[Any] = message
            return await batches.answer_batch(request, several, partial(self._answer_one, request, caller))
        return await self._answer_one(request, caller, body, message)

    async def _answer_one(self, request: Request, caller: Caller, body: bytes, message: Any) -> Response:
        method = message.get("method") if isinstance(message, dict) else None
        session = session_of(request)
        if method == "notifications/cancelled" and "write" in caller.scopes:
            await self._cancel(caller, session, message)
        if is_answer(message):
            await pass_answer_on(self._gateway.bus, caller.tenant, message)
            return Response(status_code=202)
        request.scope["state"]["identity"] = caller
        if method == "tools/call":
            SCHEMA.set(await self._schema(caller, message.get("params")))
        handshake = new_session(message.get("params")) if method == "initialize" else None
        begun = CallIds.of_request(caller.tenant, session, message.get("id") if method else None)
        client = McpClient(self._gateway.bus, caller.tenant, session, begun.digest if begun else None)
        most = self._gateway.settings.body_max_bytes
        return _Exchange(self._server, client, body, handshake=handshake, most=most)

    def stream(self, request: Request, caller: Caller) -> Response:
        """Return the stream that tells a session's client what changes. Raises HTTPException without a session."""
        session = session_of(request)
        if session is None or EventSourceResponse.media_type not in request.headers.get("accept", ""):
            raise HTTPException(405, NO_STREAM, headers={"Allow": "POST"})
        self._gateway.streams.require_room(caller)
        return EventSourceResponse(self._subscriptions.stream(caller, session), headers=UNBUFFERED)

    async def _schema(self, caller: Caller, params: Any) -> Mapping[str, Any] | None:
        """Return the input schema of the tool that is called, where the caller has such a tool."""
        name = params.get("name") if isinstance(params, Mapping) else None
        try:
            return await self._schema_of(caller, name) if isinstance(name, str) else None
        except WaylineError:
            # The call itself says what is wrong.
            return None

    async def _cancel(self, caller: Caller, session: str | None, message: Mapping[str, Any]) -> None:
        """Stop what a request began, whichever replica serves it. A request that has ended is not looked for."""
        params = message.get("params")
        wanted = params.get("requestId") if isinstance(params, Mapping) else None
        begun = CallIds.of_request(caller.tenant, session, wanted if isinstance(wanted, str | int) else None)
        if begun is not None:
            await cancel(self._gateway, caller.tenant, begun)
            # One that waits for an answer of its client ends with this.
            await self._gateway.bus.send(
                ClientMessage(tenant=caller.tenant, exchange=begun.digest, message=dict(message))
            )


class _Exchange(Response):
    """A response that the MCP library writes; nothing is kept between two of them."""

    def __init__(
        self, server: Server[Any], client: McpClient, body: bytes, *, handshake: str | None, most: int
    ) -> None:
        super().__init__()
        self._server = server
        self._client = client
        self._read = body
        self._handshake = handshake
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        version = Request(scope).headers.get(MCP_PROTOCOL_VERSION_HEADER)
        exchange = scope, self._replayed(receive), self._stamped(send)
        if version is None or version in HANDSHAKE_PROTOCOL_VERSIONS:
            await serve_message(self._server, self._client, *exchange)
            return
        manager = StreamableHTTPSessionManager(self._server, stateless=True, max_request_body_size=self._most)
        async with manager.run():
            await manager.handle_request(*exchange)

    def _replayed(self, receive: Receive) -> Receive:
        """Give the body that was read already, then what else the server says of the connection."""
        unread = [self._read]

        async def replay() -> Message:
            if unread:
                return {"type": "http.request", "body": unread.pop(), "more_body": False}
            return await receive()

        return replay

    def _stamped(self, send: Send) -> Send:
        """Add the session id to the answer of a handshake."""
        if self._handshake is None:
            return send
        header = (SESSION_HEADER.encode(), self._handshake.encode())

        async def stamp(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 200:
                message = {**message, "headers": [*message["headers"], header]}
            await send(message)

        return stamp
