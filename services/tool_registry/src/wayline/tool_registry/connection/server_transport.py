"""Reach one MCP server: over HTTP, or as a program on its standard streams."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from wayline.contracts.server_config import ServerConfig
from wayline.guarded_http import AddressPolicy
from wayline.tool_registry.calls.results import IMAGE_MAX_BYTES, IMAGES_MAX
from wayline.tool_registry.connection.http.bytes_in_flight import BytesInFlight
from wayline.tool_registry.errors import NotBegun
from wayline.tool_registry.programs.program_policy import ProgramPolicy, least
from wayline.tool_registry.secrets.secret_references import names_of, resolved, spellings
from wayline.tool_registry.secrets.server_secrets import ServerSecrets

if TYPE_CHECKING:
    from ssl import SSLContext

    from httpx2 import AsyncBaseTransport, AsyncClient, Auth
    from pydantic import SecretStr

    from wayline.tool_registry.connection.http.answer_streams import AnswerLimits
    from wayline.tool_registry.connection.program_streams import ProgramLimits

CONNECT_S = 10.0
MESSAGE_MAX_BYTES = 64 * 1024 * 1024
"""Of one answer that is no tool's result, as of a line of a program."""
EVENT_MAX_BYTES = 2 * MESSAGE_MAX_BYTES
"""The library's limit of an event: ours come first, and a result that it drops would be lost after the effect."""
IMAGES_BYTES = 4 * IMAGES_MAX * IMAGE_MAX_BYTES // 3 + 1024 * 1024
"""Of an answer that holds as many images as a result may show."""
IN_FLIGHT_BYTES = 64 * 1024 * 1024

AddSecret: TypeAlias = Callable[[str], None]
NamedSecrets: TypeAlias = Callable[[Collection[str]], Awaitable[Mapping[str, str]]]
MakeAuth: TypeAlias = "Callable[[AddSecret], Auth]"
"""Makes what authenticates requests; that calls AddSecret with each token that it uses."""


@dataclass(frozen=True)
class Confinement:
    """What a server that a tenant brought may reach and use."""

    addresses: AddressPolicy
    proxy: str | None = field(default=None, repr=False)
    """The installation's own, through which the internet is reached."""
    programs: ProgramPolicy | None = None
    """None: it can be no program."""
    in_flight: BytesInFlight | None = None
    """What the answers of all servers of the tenant may hold at once."""
    secrets: NamedSecrets | None = None
    """Returns the values of the tenant's secrets by name, of those that there are."""
    tenant: str = ""
    """Whose share of look-ups of names is used."""


class Transport:
    """The way to one server; `confined` where a tenant brought it, None where the installation names it."""

    def __init__(
        self,
        server: ServerConfig,
        *,
        connections_max: int,
        confined: Confinement | None,
        result_bytes: int,
        errors_to: TextIO | None = None,
        authorize: MakeAuth | None = None,
        ca_file: str | None = None,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Take the server; `on_end` is called once a program has ended by itself, or was ended here."""
        self._authorize = authorize
        self._ca_file = ca_file
        self._on_end = on_end
        self._result_bytes = result_bytes
        self._server = server
        self._resolved = server
        """With values in place of references to secrets: what is sent, and shown nowhere."""
        self._connections_max = connections_max
        self._confined = confined
        self._errors_to = errors_to
        self._http: AsyncClient | None = None
        self.secrets = ServerSecrets(server)
        self.ended = ""
        """Why the last connection with a program was ended here."""

    @property
    def over_http(self) -> bool:
        return self._server.url is not None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Hold what all connections share: an HTTP client, or a program's error stream."""
        errors_to = self._errors_to
        async with AsyncExitStack() as stack:
            if self.over_http:
                # One for all sessions: one that breaks takes no connection of another with it.
                self._http = await stack.enter_async_context(self._http_client())
            elif self._confined is not None and self._errors_to is None:
                # Not into our own log: what a program writes there may hold its secrets.
                self._errors_to = stack.enter_context(_nowhere())
            try:
                yield
            finally:
                self._http, self._errors_to = None, errors_to

    async def resolve(self) -> None:
        """Read the secrets that the server refers to, before a connection is made. Raises NotBegun."""
        names = names_of(self._server)
        if not names or self._confined is None or self._confined.secrets is None:
            return
        values = await self._confined.secrets(names)
        self.secrets.add_values(spellings(values.values()))
        self._resolved = resolved(self._server, values)
        if self._http is not None:
            self._http.headers.update(_without_encoding(_plain(self._resolved.headers)))

    def target(self) -> Any:
        """Return what the MCP library connects to, once."""
        server = self._resolved
        if server.command is not None:
            return self._program(server.command)
        if server.sse:
            from mcp.client.sse import sse_client

            return sse_client(server.url or "", httpx_client_factory=self._sse_client)
        from mcp.client.streamable_http import streamable_http_client

        return streamable_http_client(server.url or "", http_client=self._http, max_sse_event_size=EVENT_MAX_BYTES)

    def hide(self, text: str) -> str:
        """Return an error without the server's secrets."""
        return self.secrets.hide(text)

    def without_secrets(self, value: Any) -> Any:
        """Return a definition, a list or a resource without the server's secrets."""
        return self.secrets.without_secrets(value)

    def _program(self, command: str) -> Any:
        args, env = list(self._resolved.args), _plain(self._resolved.env)
        found = shutil.which(command)
        if found is None:
            raise NotBegun(f"there is no program {command!r} where the tool-registry runs")
        if sys.platform == "win32":
            from mcp import StdioServerParameters, stdio_client

            return stdio_client(
                StdioServerParameters(command=found, args=args, env=env or None),
                errlog=self._errors_to or sys.stderr,
            )
        self.ended = ""
        policy = None if self._confined is None else self._confined.programs
        return self._streams([found, *args], env) if policy is None else self._confined_streams(policy, found, env)

    @asynccontextmanager
    async def _confined_streams(self, policy: ProgramPolicy, found: str, env: dict[str, str]) -> AsyncIterator[Any]:
        """Start a tenant's program in a place of its own, and yield the streams of its messages."""
        async with (
            policy.place(self._server, found) as place,
            self._streams([*place.prefix, found, *self._resolved.args], {**place.env, **env}, cwd=place.cwd) as streams,
        ):
            yield streams

    def _streams(
        self, argv: list[str], env: dict[str, str], *, cwd: str | None = None
    ) -> AbstractAsyncContextManager[Any]:
        from mcp.client.stdio import get_default_environment

        from wayline.tool_registry.connection.program_streams import program_streams

        in_flight = None if self._confined is None else self._confined.in_flight
        return program_streams(
            argv,
            env=env if self._confined is not None else {**get_default_environment(), **env},
            cwd=cwd,
            errors_to=self._errors_to,
            ended=self._note_end,
            limits=self._limits(),
            result_bytes=self._result_bytes,
            message_bytes=most_of_call(self._result_bytes),
            **({} if in_flight is None else {"take_turn": in_flight.pace.take_turn}),
        )

    def _note_end(self, why: str) -> None:
        policy = None if self._confined is None else self._confined.programs
        self.ended = why if policy is None else policy.explained(why, self._server)
        self._on_end()

    def _limits(self) -> ProgramLimits:
        """Return the limits of a program: its own, and where a tenant brought it the installation's."""
        from wayline.tool_registry.connection.program_streams import ProgramLimits

        own = self._server.limits
        most = None if self._confined is None or self._confined.programs is None else self._confined.programs.most
        return ProgramLimits(
            memory_mb=least(own.memory_mb, most and most.memory_mb),
            files_max=least(own.files_max, most and most.files_max),
            file_mb=least(own.file_mb, most and most.file_mb),
        )

    def _sse_client(self, *_: object, **__: object) -> AsyncClient:
        """Return a client of a session's own, which closes it; what the library suggests for it has other limits."""
        return self._http_client()

    def _http_client(self) -> AsyncClient:
        return http_client(
            self._confined,
            connections_max=self._connections_max,
            headers=_plain(self._resolved.headers),
            auth=None if self._authorize is None else self._authorize(self.secrets.add_token),
            event_streams=frozenset({"GET"} if self._server.sse else {"GET", "POST"}),
            limits=answer_limits(
                self._result_bytes, in_flight=None if self._confined is None else self._confined.in_flight
            ),
            ca_file=self._ca_file,
        )


def http_client(
    confined: Confinement | None,
    *,
    connections_max: int,
    headers: Mapping[str, str] | None = None,
    auth: Auth | None = None,
    answer_within_s: float | None = None,
    event_streams: frozenset[str] = frozenset(),
    limits: AnswerLimits | None = None,
    ca_file: str | None = None,
) -> AsyncClient:
    """Return a client that reaches what a tenant's server may be; without confinement, everything.

    Its answers are bounded, except those that are streams of events, by the methods that ask for such.
    """
    from httpx2 import AsyncClient, AsyncHTTPTransport, Limits, Timeout

    from wayline.tool_registry.connection.http.bounded_answers import bound_answers
    from wayline.tool_registry.connection.http.sent_calls import SentCalls

    options: dict[str, Any] = {
        "timeout": Timeout(CONNECT_S, read=answer_within_s),
        "headers": {**_without_encoding(headers or {}), "Accept-Encoding": "identity"},
        "event_hooks": {"response": [bound_answers(event_streams=event_streams, limits=limits or answer_limits(0))]},
        "auth": auth,
        # A redirect is not followed: it could lead to a server that must not see the headers.
        "follow_redirects": False,
    }
    if confined is not None:
        from wayline.guarded_http.outbound import Outbound
        from wayline.tool_registry.connection.http.tenant_http import TenantTransport

        outbound = Outbound(confined.proxy, ca_file)
        transport: AsyncBaseTransport = TenantTransport(
            confined.tenant, confined.addresses, outbound, connections_max=connections_max
        )
    else:
        pool = Limits(max_connections=connections_max, max_keepalive_connections=20)
        transport = AsyncHTTPTransport(limits=pool, verify=_certificates(ca_file))
    return AsyncClient(transport=SentCalls(transport) if "POST" in event_streams else transport, **options)


def answer_limits(result_bytes: int, *, in_flight: BytesInFlight | None = None) -> AnswerLimits:
    """Return what the answers of a server may take, whose results may be so long."""
    from wayline.tool_registry.connection.http.answer_streams import AnswerLimits

    return AnswerLimits(
        call_bytes=most_of_call(result_bytes),
        result_bytes=result_bytes,
        message_bytes=MESSAGE_MAX_BYTES,
        in_flight=in_flight or BytesInFlight(IN_FLIGHT_BYTES),
    )


def most_of_call(result_bytes: int) -> int:
    """Return how many bytes of the answer to a call are read, of whose result so many are kept."""
    return max(2 * result_bytes, IMAGES_BYTES)


@cache
def _certificates(ca_file: str | None) -> SSLContext:
    """Return what TLS connections trust, also by the environment, read once: no call waits while it is read again."""
    from httpx2 import create_ssl_context

    context = create_ssl_context()
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    return context


@contextmanager
def _nowhere() -> Iterator[TextIO]:
    with Path(os.devnull).open("w") as nowhere:
        yield nowhere


def _without_encoding(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() != "accept-encoding"}


def _plain(values: Mapping[str, SecretStr]) -> dict[str, str]:
    return {name: value.get_secret_value() for name, value in values.items()}
