"""One message of a client that shakes hands, and what the client is asked while it is answered.

Before protocol 2026-07-28 a server asks in the stream of its answer, and the client answers with a request of its own.
Any replica may get that request, and passes it on to the one that asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

import anyio
import orjson
import structlog
from mcp.server import NotificationOptions, Server
from mcp.server.connection import Connection
from mcp.server.runner import serve_connection
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.shared._stream_protocols import WriteStream
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types import DEFAULT_NEGOTIATED_VERSION, JSONRPCNotification, JSONRPCRequest
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from starlette.types import Message, Receive, Scope, Send

from wayline.chassis import Bus
from wayline.chassis.nats_client.callback_subscription import leave
from wayline.contracts.errors import WaylineError
from wayline.contracts.mcp_clients import ClientMessage
from wayline.gateway.errors import NothingAsked
from wayline.gateway.handlers.mcp.client_session import capabilities_of

log = structlog.get_logger()

_QUESTION: Final = re.compile(r"([0-9a-f]{20})-([0-9]{1,9})")
"""The id of a question: the exchange that it belongs to, and its number there."""
TOLD: Final = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
"""What is told on the stream of `GET /mcp`."""
_POSTED: Final[dict[str, Any]] = {
    "type": "http",
    "method": "POST",
    "path": "/mcp",
    "query_string": b"",
    "headers": [(b"content-type", b"application/json"), (b"accept", b"application/json, text/event-stream")],
}


async def serve_message(server: Server[Any], client: McpClient, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one message; a client with a session can be asked something meanwhile."""
    version = dict(scope["headers"]).get(MCP_PROTOCOL_VERSION_HEADER.encode(), b"").decode("latin-1")
    connection = Connection.from_envelope(version or DEFAULT_NEGOTIATED_VERSION, None, None)
    connection.client_capabilities = capabilities_of(client.session)
    context = TransportContext(kind="streamable-http", can_send_request=client.exchange is not None)
    transport = StreamableHTTPServerTransport(mcp_session_id=None)
    async with transport.connect() as (read, write), anyio.create_task_group() as tasks:
        questions = QuestionStream(client, transport, write)
        dispatcher = JSONRPCDispatcher[TransportContext](
            read, questions, inline_methods=frozenset({"initialize"}), transport_builder=lambda _: context
        )
        options = None if client.session else server.create_initialization_options(TOLD)
        serve = partial(
            serve_connection, server, dispatcher, connection=connection, lifespan_state={}, init_options=options
        )
        try:
            await tasks.start(serve)
            await transport.handle_request(scope, receive, send)
        finally:
            with anyio.CancelScope(shield=True):
                await questions.hear_no_more()
                await transport.terminate()


@dataclass(frozen=True)
class McpClient:
    """The client that sent a message."""

    bus: Bus
    tenant: str
    session: str | None
    exchange: str | None
    """Names its request among all those of its tenant; None: it has no session, and cannot be asked anything."""

    @property
    def subject(self) -> str:
        """Return where other replicas pass on what belongs to the request."""
        return ClientMessage(tenant=self.tenant, exchange=self.exchange or "").subject


class QuestionStream:
    """What a request writes to its client; a question is given an id by which its answer finds back."""

    def __init__(
        self, client: McpClient, transport: StreamableHTTPServerTransport, written: WriteStream[SessionMessage]
    ) -> None:
        self._client = client
        self._transport = transport
        self._written = written
        self._hearing: Subscription | None = None

    async def send(self, item: SessionMessage) -> None:
        """Write a message to the client."""
        match item.message:
            case JSONRPCRequest(id=number) as question:
                await self._hear_client()
                renamed = question.model_copy(update={"id": self._named(number)})
                item = SessionMessage(renamed, metadata=item.metadata)
            case JSONRPCNotification(method="notifications/cancelled", params={"requestId": number} as params) as told:
                renamed = told.model_copy(update={"params": {**params, "requestId": self._named(number)}})
                item = SessionMessage(renamed, metadata=item.metadata)
            case _:
                pass
        await self._written.send(item)

    def _named(self, number: object) -> str:
        return f"{self._client.exchange}-{number}"

    async def _hear_client(self) -> None:
        if self._hearing is None:
            self._hearing = await self._client.bus.nc.subscribe(self._client.subject, cb=self._take)
            await self._client.bus.settled()

    async def _take(self, message: Msg) -> None:
        """Hand what another replica has passed on to the transport, as if the client had posted it here."""
        try:
            posted = (await self._client.bus.hear(ClientMessage, message)).message
            if is_answer(posted):
                posted = {**posted, "id": _number_of(posted["id"])[1]}
        except WaylineError as error:
            log.warning("a message of an MCP client was not readable", why=str(error))
            return
        body = orjson.dumps(posted)
        await self._transport.handle_request(dict(_POSTED), _reading(body), _ignore)

    async def hear_no_more(self) -> None:
        """End the subscription to answers."""
        if self._hearing is not None:
            await leave(self._client.bus.nc, self._hearing)

    async def aclose(self) -> None:
        await self._written.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


async def pass_answer_on(bus: Bus, tenant: str, answer: Mapping[str, Any]) -> None:
    """Pass a client's answer on to the replica that asked. Raises NothingAsked where its id is not of a question."""
    exchange, _ = _number_of(answer.get("id"))
    await bus.send(ClientMessage(tenant=tenant, exchange=exchange, message=dict(answer)))


def _number_of(question: object) -> tuple[str, int]:
    """Return the exchange and the number in the id of a question. Raises NothingAsked."""
    found = _QUESTION.fullmatch(str(question))
    if found is None:
        raise NothingAsked(id=question)
    return found[1], int(found[2])


def is_answer(message: Any) -> bool:
    """Return whether a JSON-RPC message is a response."""
    return isinstance(message, dict) and "method" not in message and ("result" in message or "error" in message)


def _reading(body: bytes) -> Receive:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def _ignore(_: Message) -> None:
    pass
