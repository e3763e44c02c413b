"""One MCP server: a task that keeps it connected, and calls of its tools."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import structlog

from wayline.contracts.server_config import ServerSettings
from wayline.store import PostgresUnavailable
from wayline.tool_registry.adapters.connection.failures import call_error, is_lost, reason, refusal
from wayline.tool_registry.adapters.connection.learn_tools import LearnedTools, ToolLearner
from wayline.tool_registry.adapters.connection.mcp_input import send_call
from wayline.tool_registry.adapters.connection.mcp_library import load
from wayline.tool_registry.adapters.connection.offered_tools import first_page
from wayline.tool_registry.adapters.connection.questions import CallQuestions, Questions
from wayline.tool_registry.adapters.connection.reconnect_wait import ReconnectWait
from wayline.tool_registry.adapters.connection.redacted_results import redacted_result
from wayline.tool_registry.adapters.connection.server_task import ServerTask
from wayline.tool_registry.adapters.connection.sessions import another, entered
from wayline.tool_registry.adapters.connection.tool_changes import ToolChanges
from wayline.tool_registry.adapters.connection.transport import Confinement, MakeAuth, Transport
from wayline.tool_registry.adapters.tables.definition_table import ServerPins
from wayline.tool_registry.errors import (
    AnswerLost,
    LoginRefused,
    NeedsLogin,
    NotBegun,
    SessionEnded,
    TimedOut,
    Unusable,
)
from wayline.tool_registry.settings import Settings
from wayline.tool_registry.tools.arguments import Arguments
from wayline.tool_registry.tools.tool_servers import NEEDS_LOGIN, ToolRequest

if TYPE_CHECKING:
    from mcp import Client, ClientSession
    from mcp_types import CallToolResult, InputRequiredResult

log = structlog.get_logger()

Question: TypeAlias = "Callable[[Client], Awaitable[dict[str, Any]]]"

OVERTIME_S = 5.0
"""How long after a tool's timeout its connection may still hold a call up."""
LOOK_AGAIN_S = 0.02
"""How often it is looked whether a connection was replaced."""
PROBLEM_MAX = 300
"""The most characters of a server's error that are reported."""


class _RequestStopped(Exception):
    """A request that was stopped before it left."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__(str(error))
        self.error = error


class McpServer(ServerTask):
    """Keeps one server connected and its tools known; what it does cannot disturb another server."""

    inside = False

    def __init__(
        self,
        server: ServerSettings,
        settings: Settings,
        arguments: Arguments,
        *,
        confined: Confinement | None = None,
        pins: ServerPins | None = None,
        authorize: MakeAuth | None = None,
    ) -> None:
        super().__init__(server.name)
        self._server = server
        self._settings = settings
        self._lost = False
        self._woken = asyncio.Event()
        """Set where the connection is of no use any more, or the tools are to be asked for at once."""
        self._client: Client | None = None
        self._connected_at: float | None = None
        # One more than calls: for the stream of changes.
        connections_max = settings.calls_max + 1
        self._transport = Transport(
            server,
            connections_max=connections_max,
            confined=confined,
            result_bytes=settings.result_max_bytes,
            authorize=authorize,
            ca_file=settings.ca_path,
            on_end=self._lose,
        )
        self._learner = ToolLearner(
            server, settings, arguments, pins=pins, without_secrets=self._transport.without_secrets
        )
        self._problem = "it is being connected"
        self._under_way = 0
        self._questions = Questions()
        self._changes = ToolChanges(self.learn_again)
        self._idle = asyncio.Event()
        self._idle.set()
        self._silent = False
        """Whether the last call got no answer."""

    @property
    def problem(self) -> str | None:
        """Return why it cannot be used now; None while it is connected."""
        return None if self._usable.is_set() else self._problem[:PROBLEM_MAX]

    def hide(self, text: str) -> str:
        """Return a text without the secrets that the server is sent."""
        return self._transport.hide(text)

    def learn_again(self) -> None:
        """Ask for the tools at once: they, or what was approved of them, have changed."""
        self._woken.set()

    async def retire(self, grace_s: float) -> None:
        """Stop once the calls under way have ended, or the grace is over; no new call finds this server."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), grace_s)
        await self.stop()

    async def call(self, request: ToolRequest) -> CallToolResult | InputRequiredResult:
        """Call a tool. Raises NotBegun, AnswerLost, TimedOut, Unusable, or the error that stops the request."""
        stop: Exception | None = None
        result: CallToolResult | InputRequiredResult | None = None
        asked: CallQuestions | None = None
        # Three times: it may first be proved that the server answers, and others be waited for.
        within_s = self._settings.available_within_s + 3 * request.timeout_s + OVERTIME_S
        try:
            async with (
                self._counted(),
                asyncio.timeout(within_s),
                self._session(effect=request.effect, timeout_s=request.timeout_s) as session,
                self._questions.during(request.answer, within_s=request.timeout_s) as asked,
            ):
                # A session may take long to open. What stops the request is raised outside of the session, which
                # would make a group of it.
                stop = await request.stopped()
                if stop is None:
                    result = await send_call(session, request, hide=self.hide)
            if stop is not None or result is None or asked is None:
                raise _RequestStopped(stop)
            self._silent = False
            return redacted_result(asked.ended(result, hide=self.hide), self._transport.secrets)
        except _RequestStopped as stopped:
            raise stopped.error or NotBegun("the request was not sent") from None
        except NotBegun as error:
            raise type(error)(self.hide(str(error))) from None
        except TimeoutError:
            self._silent = True
            raise TimedOut(after_s=request.timeout_s) from None
        except Exception as error:
            if asked is not None and asked.asked is not None and (refused := refusal(error)) is not None:
                # Many servers fail a call whose question was cancelled.
                return redacted_result(asked.open_question(self.hide(refused)), self._transport.secrets)
            # Not `from error`: its text may repeat what the server was sent.
            raise self._failure(error, request) from None

    def _failure(self, error: Exception, request: ToolRequest) -> Exception:
        """Return what a call failed with: of anything that a transport raises one of our four, or we would guess."""
        failure = call_error(error, timeout_s=request.timeout_s, hide=self.hide)
        if isinstance(failure, AnswerLost) and self._transport.ended:
            failure = AnswerLost(f"{self.name}: {self._transport.ended}")
        self._silent = isinstance(failure, TimedOut)
        if isinstance(failure, SessionEnded) and not request.effect:
            failure = NotBegun(str(failure))
        nothing_runs = isinstance(failure, NotBegun | LoginRefused)
        if is_lost(error) and (nothing_runs or not self._has_sessions_of_their_own(request.effect)):
            self._lose()
        return failure

    @asynccontextmanager
    async def _counted(self) -> AsyncIterator[None]:
        """Count a call while it is under way."""
        self._under_way += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()

    async def ask_as(self, user_id: str | None, question: Question) -> dict[str, Any]:
        """Ask as `ask` does, on behalf of a user: that counts only where each user logs in."""
        return await self.ask(question)

    async def ask(self, question: Question) -> dict[str, Any]:
        """Ask what changes nothing, and return the answer without secrets.

        Raises NotBegun, AnswerLost, TimedOut or Unusable.
        """
        timeout_s = self._server.timeout_s
        try:
            async with self._counted():
                if not await self.ready(self._settings.available_within_s) or (client := self._client) is None:
                    raise self._away()
                async with asyncio.timeout(timeout_s):
                    return self._transport.without_secrets(await question(client))
        except NotBegun as error:
            raise type(error)(self.hide(str(error))) from None
        except TimeoutError:
            raise TimedOut(after_s=timeout_s) from None
        except Exception as error:
            # Anything that a transport raises becomes one of our four.
            if is_lost(error):
                self._lose()
            refused = None if is_lost(error) else refusal(error)
            # Not `from error`: its text may repeat what the server was sent.
            raise (
                call_error(error, timeout_s=timeout_s, hide=self.hide)
                if refused is None
                else Unusable(self.hide(refused))
            ) from None

    @asynccontextmanager
    async def _session(self, *, effect: bool, timeout_s: float) -> AsyncIterator[ClientSession]:
        if not await self.ready(self._settings.available_within_s) or (client := self._client) is None:
            raise self._away()
        if not effect:
            yield client.session
        elif self._has_sessions_of_their_own(effect):
            # One broken connection ends every call on it: an effect's outcome must not hang on a neighbour's.
            async with another(client, self._transport.target(), self._questions) as session:
                yield session
        else:
            yield (await self._proved(client, within_s=timeout_s)).session

    def _away(self) -> NotBegun:
        kind = NeedsLogin if self._problem.startswith(NEEDS_LOGIN) else NotBegun
        return kind(f"the server {self.name!r} does not answer: {self._problem}")

    def _has_sessions_of_their_own(self, effect: bool) -> bool:
        """Return whether each call with an effect opens a session: free over HTTP since protocol 2026-07-28."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        client = self._client
        over_http = self._transport.over_http
        return effect and over_http and client is not None and client.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def _proved(self, client: Client, *, within_s: float) -> Client:
        """Return a connection on which the server has just answered, a new one where it has forgotten this one."""
        try:
            await self._prove(client, within_s=within_s)
            return client
        except NotBegun:
            # A server that was restarted knows no session from before: nothing was done, and another one is opened.
            if (fresh := await self._another_than(client)) is None:
                raise
        await self._prove(fresh, within_s=within_s)
        return fresh

    async def _another_than(self, client: Client) -> Client | None:
        """Return the connection that follows one; None: there is none in time, or the server is only silent."""
        until = time.monotonic() + self._settings.available_within_s
        while self._lost or self._client is client:
            if not self._lost and self._usable.is_set():
                return None
            if time.monotonic() >= until:
                return None
            await asyncio.sleep(LOOK_AGAIN_S)
        left_s = max(0.0, until - time.monotonic())
        return self._client if await self.ready(left_s) else None

    async def _prove(self, client: Client, *, within_s: float) -> None:
        """Ask something harmless first: a pipe that broke unnoticed would make an effect's outcome unknown."""
        try:
            async with asyncio.timeout(within_s):
                await first_page(client)
        except TimeoutError:
            self._silent = True
            raise NotBegun(f"the server {self.name!r} has not answered anything within {within_s:g} s") from None
        except Exception as error:
            self._lose()
            raise NotBegun(f"the server {self.name!r} does not answer: {reason(error)}") from None

    async def _run(self) -> None:
        await load()
        await self._recall()
        wait = ReconnectWait(most_s=self._settings.reconnect_wait_max_s)
        async with self._transport.opened():
            while not self._closing:
                self._lost = False
                self._woken.clear()
                try:
                    await self._stay_connected()
                except Exception as error:
                    # A server is foreign code: nothing that it does may end the task that would connect it again.
                    self._problem = self.hide(self._transport.ended or reason(error))
                if self._closing:
                    return
                log.warning("mcp server is away", server=self.name, why=self._problem)
                wait_s = wait.after(self._leave())
                await asyncio.sleep(wait_s * random.uniform(0.5, 1))

    def _leave(self) -> float:
        """Offer the server to no call any more, and return how long it was connected."""
        connected_at, self._connected_at = self._connected_at, None
        self._client = None
        self._usable.clear()
        self.tried.set()
        self.listed.set()
        return 0.0 if connected_at is None else time.monotonic() - connected_at

    async def _stay_connected(self) -> None:
        from mcp import Client

        self._questions = Questions()
        await self._transport.resolve()
        client = Client(
            self._transport.target(),
            cache=None,
            elicitation_callback=self._questions.hear,
            message_handler=self._changes.hear,
        )
        within_s = self._settings.connect_timeout_s
        async with entered(client, within_s=within_s):
            await self._learn(client)
            self.known = True
            self._client, self._connected_at = client, time.monotonic()
            self._usable.set()
            self.tried.set()
            self.listed.set()
            log.info("mcp server is connected", server=self.name, tools=len(self.tools))
            async with self._changes.listening(client, within_s=within_s):
                while not await self._is_lost(within_s=self._settings.probe_every_s):
                    self._woken.clear()
                    await self._probe(client)
        self._problem = self._transport.ended or "its connection broke"

    async def _probe(self, client: Client) -> None:
        """Ask for the tools again; no answer is the end of a connection, unless the server is busy with a call.

        Many servers do one thing at a time: to leave one now would end its call, perhaps in the middle of an effect.
        """
        try:
            await self._learn(client)
        except TimeoutError:
            if self._silent or not self._under_way:
                raise
        else:
            self._silent = False

    async def _is_lost(self, *, within_s: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._woken.wait(), within_s)
        return self._lost

    def _lose(self) -> None:
        self._lost = True
        self._woken.set()

    async def _learn(self, client: Client) -> None:
        self._take(await self._learner.learn(client, within_s=self._settings.connect_timeout_s))

    async def _recall(self) -> None:
        """List the tools as they were approved, until the server is reached: a job that begins now has them too."""
        try:
            recalled = await self._learner.recall()
        except (NotBegun, PostgresUnavailable) as error:
            log.info("tools of a server are known only once it is reached", server=self.name, why=str(error))
            return
        if recalled is not None:
            self._take(recalled)
            self.known = True
            self.listed.set()

    def _take(self, learned: LearnedTools) -> None:
        self.tools, self.left_out, self.held = dict(learned.tools), dict(learned.left_out), dict(learned.held)
        self.instructions = learned.instructions
