"""One MCP server: a task that keeps it connected, and calls of its tools."""

from __future__ import annotations

import asyncio
import importlib
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog

from wayline.tool_registry.adapters.failures import call_error, is_lost, reason
from wayline.tool_registry.arguments import Arguments
from wayline.tool_registry.catalogue import Tool, admit
from wayline.tool_registry.errors import NotBegun, TimedOut
from wayline.tool_registry.settings import ServerSettings, Settings

if TYPE_CHECKING:
    from httpx2 import AsyncClient
    from mcp import Client, ClientSession
    from mcp_types import CallToolResult

log = structlog.get_logger()

RECONNECT_FIRST_S = 0.2
CONNECT_S = 10.0
OVERTIME_S = 5.0
"""How long after a tool's timeout its connection may still hold a call up."""
CLOSE_S = 5.0
PAGES_MAX = 100


@dataclass(frozen=True)
class Place:
    """Where a server is: `inside` makes one that runs in this process."""

    settings: ServerSettings
    inside: Callable[[], Any] | None = None


class Upstream:
    """Keeps one server connected and its tools known; what it does cannot disturb another server."""

    def __init__(self, place: Place, settings: Settings, arguments: Arguments) -> None:
        self.name = place.settings.name
        self.inside = place.inside is not None
        self.tools: dict[str, Tool] = {}
        self.tried = asyncio.Event()
        """Set once connecting has succeeded or failed."""
        self._place = place
        self._settings = settings
        self._arguments = arguments
        self._connected = asyncio.Event()
        self._lost = asyncio.Event()
        self._client: Client | None = None
        self._http: AsyncClient | None = None
        self._problem = "it is being connected"
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._supervise(), name=f"mcp server {self.name}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=CLOSE_S)

    async def ready(self, within_s: float) -> bool:
        """Whether the server is connected, after waiting a little for one that is not."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._connected.wait(), within_s)
        return self._connected.is_set()

    async def call(
        self, name: str, arguments: dict[str, Any], *, meta: dict[str, Any], timeout_s: float, effect: bool
    ) -> CallToolResult:
        """Call a tool by its server's name for it; `effect`: a repeat would matter.

        Raises NotBegun, Cut, TimedOut or Unusable.
        """
        from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult

        params = CallToolRequestParams.model_validate({"name": name, "arguments": arguments, "_meta": meta})
        try:
            async with asyncio.timeout(self._settings.available_within_s + timeout_s + OVERTIME_S):
                async with self._session(effect=effect) as session:
                    # Not `call_tool`: that would fail a call whose effect took place over its output schema.
                    return await session.send_request(
                        CallToolRequest(params=params), CallToolResult, request_read_timeout_seconds=timeout_s
                    )
        except NotBegun:
            raise
        except TimeoutError:
            raise TimedOut(after_s=timeout_s) from None
        except Exception as error:
            # Whatever a transport raises: it becomes one of our four, or the outcome would be guessed at.
            if is_lost(error):
                self._lost.set()
            raise call_error(error, timeout_s=timeout_s) from error

    @asynccontextmanager
    async def _session(self, *, effect: bool) -> AsyncIterator[ClientSession]:
        if not await self.ready(self._settings.available_within_s) or (client := self._client) is None:
            raise NotBegun(f"the server {self.name!r} does not answer: {self._problem}")
        if not effect or self.inside:
            yield client.session
        elif self._http is not None and _is_modern(client):
            # One broken connection ends every call on it: an effect's outcome must not hang on a neighbour's.
            async with _another(client, self._place.settings.url, self._http) as session:
                yield session
        else:
            await self._prove(client)
            yield client.session

    async def _prove(self, client: Client) -> None:
        """Ask something harmless first: a pipe that broke unnoticed would make an effect's outcome unknown."""
        try:
            await client.session.list_tools()
        except Exception as error:
            self._lost.set()
            raise NotBegun(f"the server {self.name!r} does not answer: {reason(error)}") from error

    async def _supervise(self) -> None:
        # Half a second of imports: on a thread, so that the service is up before its tools are.
        await asyncio.to_thread(_load)
        wait_s = RECONNECT_FIRST_S
        while True:
            self._lost.clear()
            try:
                await self._stay_connected()
                wait_s = RECONNECT_FIRST_S
            except Exception as error:
                # A server is foreign code: nothing that it does may end the task that would connect it again.
                wait_s = RECONNECT_FIRST_S if self._connected.is_set() else wait_s
                self._problem = reason(error)
                log.warning("mcp server is away", server=self.name, why=self._problem)
            finally:
                self._client = self._http = None
                self._connected.clear()
                self.tried.set()
            await asyncio.sleep(wait_s * random.uniform(0.5, 1))
            wait_s = min(wait_s * 2, self._settings.reconnect_wait_max_s)

    async def _stay_connected(self) -> None:
        async with self._transport() as (target, http):
            from mcp import Client

            client = Client(target, cache=None)
            async with _entered(client, within_s=self._settings.connect_timeout_s):
                await self._learn(client)
                self._client, self._http = client, http
                self._connected.set()
                self.tried.set()
                log.info("mcp server is connected", server=self.name, tools=len(self.tools))
                while not self._lost.is_set():
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._lost.wait(), self._settings.probe_every_s)
                        return
                    await self._learn(client)

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[tuple[Any, AsyncClient | None]]:
        server = self._place.settings
        if self._place.inside is not None:
            yield self._place.inside(), None
        elif server.command is not None:
            from mcp import StdioServerParameters

            yield StdioServerParameters(command=server.command, args=list(server.args), env=server.env or None), None
        else:
            from httpx2 import AsyncClient, Limits, Timeout
            from mcp.client.streamable_http import streamable_http_client

            limits = Limits(max_connections=self._settings.calls_max, max_keepalive_connections=20)
            async with AsyncClient(timeout=Timeout(CONNECT_S, read=None), limits=limits) as http:
                yield streamable_http_client(server.url or "", http_client=http), http

    async def _learn(self, client: Client) -> None:
        """Ask for the server's tools; one whose schema cannot be used is left out, saying so."""
        found: dict[str, Tool] = {}
        cursor: str | None = None
        async with asyncio.timeout(self._settings.connect_timeout_s):
            for _ in range(PAGES_MAX):
                page = await client.list_tools(cursor=cursor)
                for offered in page.tools:
                    tool = admit(
                        offered,
                        self._place.settings,
                        retry_after_s=self._settings.retry_after_s,
                        prefix=not self.inside,
                    )
                    if problem := self._arguments.check_schema(tool.definition.input_schema):
                        log.warning("tool left out", server=self.name, tool=offered.name, schema=problem)
                    else:
                        found.setdefault(tool.name, tool)
                cursor = page.next_cursor
                if cursor is None:
                    break
        self.tools = found


def _load() -> None:
    for module in ("mcp", "mcp.client.streamable_http", "jsonschema"):
        importlib.import_module(module)


@asynccontextmanager
async def _entered(client: Client, *, within_s: float) -> AsyncIterator[None]:
    """Connect within a time limit that ends when the connection stands."""
    async with AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(within_s):
                await stack.enter_async_context(client)
        except TimeoutError:
            raise NotBegun(f"no connection within {within_s:g} s") from None
        yield


def _is_modern(client: Client) -> bool:
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    return client.protocol_version in MODERN_PROTOCOL_VERSIONS


@asynccontextmanager
async def _another(client: Client, url: str | None, http: AsyncClient) -> AsyncIterator[ClientSession]:
    """A second session with the same server, by what the first one has found out."""
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    transport = streamable_http_client(url or "", http_client=http)
    discovered = client.session.discover_result
    async with Client(transport, mode=client.protocol_version, prior_discover=discovered, cache=None) as fresh:
        yield fresh.session
