"""One MCP message and its answer, by the MCP library, without a session: any replica can answer any message."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import structlog
from fastapi import Request
from fastapi.responses import Response
from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import RequestId
from starlette.types import Message, Receive, Scope, Send

from wayline.contracts import ids
from wayline.contracts.errors import WaylineError
from wayline.contracts.jobs import Cancel, Signal
from wayline.contracts.tools import CancelTool
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.handlers.shared.read_job import find_log
from wayline.gateway.keys import Caller

log = structlog.get_logger()

SESSION_HEADER: Final = "mcp-session-id"
SESSION_MAX: Final = 128
CANCELLED_BY: Final = "its MCP client"
_DIGITS: Final = 20

SchemaOf = Callable[[Caller, str], Awaitable[Mapping[str, Any] | None]]
SCHEMA: ContextVar[Mapping[str, Any] | None] = ContextVar("the input schema of the tool that is called", default=None)
"""The library asks for it by the tool's name alone, and two tenants may have tools of one name."""


@dataclass(frozen=True)
class CallIds:
    """The ids of what one request begins, derived where any replica can derive them again: to cancel it."""

    digest: str

    @property
    def job_id(self) -> str:
        return f"job_{self.digest}"

    def tool_key(self, tenant: str) -> str:
        """Return the ledger's key of a tool call outside of any job."""
        return ids.tool_key(tenant, self.call_id, 1, "1")

    @property
    def call_id(self) -> str:
        return f"mcp_{self.digest}"

    @classmethod
    def of_request(cls, tenant: str, session: str | None, request_id: RequestId | None) -> CallIds | None:
        """Return the ids of a request of a session; None: the client has none, and its request ids are not unique."""
        if not session or request_id is None:
            return None
        return cls(_digest("request", tenant, session, type(request_id).__name__, str(request_id)))

    @classmethod
    def of_key(cls, tenant: str, key: str, user_id: str | None) -> CallIds:
        """Return the ids of a call that its client gave a key of its own: of another user it is another call."""
        return cls(_digest("key", tenant, key, *(() if user_id is None else (user_id,))))

    @classmethod
    def fresh(cls) -> CallIds:
        """Return ids that nobody can derive."""
        return cls(secrets.token_hex(_DIGITS // 2))


class Exchanges:
    """Answers MCP messages with a server."""

    def __init__(self, gateway: Gateway, server: Server[Any], schema_of: SchemaOf) -> None:
        self._gateway = gateway
        self._server = server
        self._schema_of = schema_of

    async def answer(self, request: Request, caller: Caller, body: bytes, message: Any) -> Response:
        """Return the answer to one message, which is written while the message is handled."""
        method = message.get("method") if isinstance(message, dict) else None
        if method == "notifications/cancelled" and "write" in caller.scopes:
            await self._cancel(caller, session_of(request), message.get("params"))
        request.scope["state"]["identity"] = caller
        if method == "tools/call":
            SCHEMA.set(await self._schema(caller, message.get("params")))
        # A client that begins with a handshake is given a session id: it tells its requests from those of others.
        session = secrets.token_hex(16) if method == "initialize" else None
        return _Exchange(self._server, body, session=session, most=self._gateway.settings.body_max_bytes)

    async def _schema(self, caller: Caller, params: Any) -> Mapping[str, Any] | None:
        """Return the input schema of the tool that is called, where the caller has such a tool."""
        name = params.get("name") if isinstance(params, Mapping) else None
        try:
            return await self._schema_of(caller, name) if isinstance(name, str) else None
        except WaylineError:
            # The call itself says what is wrong.
            return None

    async def _cancel(self, caller: Caller, session: str | None, params: Any) -> None:
        """Stop what a request began, whichever replica serves it. A request that has ended is not looked for."""
        wanted = params.get("requestId") if isinstance(params, Mapping) else None
        begun = CallIds.of_request(caller.tenant, session, wanted if isinstance(wanted, str | int) else None)
        if begun is not None:
            await cancel(self._gateway, caller.tenant, begun)


async def cancel(gateway: Gateway, tenant: str, begun: CallIds) -> None:
    """Cancel the job and the tool call of a request, as far as there are any."""
    with suppress(WaylineError):
        await gateway.bus.send(CancelTool(tenant=tenant, key=begun.tool_key(tenant)))
    await cancel_job(gateway, tenant, begun.job_id)


async def cancel_job(gateway: Gateway, tenant: str, job_id: str) -> None:
    """Ask a job to stop where there is one."""
    try:
        await find_log(gateway, tenant, job_id)
        await gateway.signals.send(Signal(tenant=tenant, job_id=job_id, signal=Cancel(by=CANCELLED_BY)))
    except WaylineError as error:
        log.info("a cancelled request stopped no job", job_id=job_id, why=str(error))


def session_of(request: Request) -> str | None:
    """Return the session that a client was given when it shook hands."""
    session = request.headers.get(SESSION_HEADER)
    return session if session and len(session) <= SESSION_MAX else None


def _digest(*parts: str) -> str:
    return sha256("\n".join(("wayline/mcp", *parts)).encode()).hexdigest()[:_DIGITS]


class _Exchange(Response):
    """A response that the MCP library writes."""

    def __init__(self, server: Server[Any], body: bytes, *, session: str | None, most: int) -> None:
        super().__init__()
        self._server = server
        self._read = body
        self._session = session
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # One for each message: it keeps nothing between them, and ends with its request.
        manager = StreamableHTTPSessionManager(self._server, stateless=True, max_request_body_size=self._most)
        async with manager.run():
            await manager.handle_request(scope, self._replayed(receive), self._stamped(send))

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
        if self._session is None:
            return send
        header = (SESSION_HEADER.encode(), self._session.encode())

        async def stamp(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 200:
                message = {**message, "headers": [*message["headers"], header]}
            await send(message)

        return stamp
