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
from wayline.tool_registry.calls.tool_servers import ToolRequest
from wayline.tool_registry.connection.failures import call_error, is_lost, reason, refusal
from wayline.tool_registry.connection.mcp_input import send_call
from wayline.tool_registry.connection.mcp_library import load
from wayline.tool_registry.connection.mcp_sessions import entered
from wayline.tool_registry.connection.questions import CallQuestions, Questions
from wayline.tool_registry.connection.server_transport import Confinement, MakeAuth
from wayline.tool_registry.definitions.arguments import Arguments
from wayline.tool_registry.definitions.definition_table import ServerPins
from wayline.tool_registry.errors import (
    AnswerLost,
    LoginRefused,
    NotBegun,
    SessionEnded,
    TimedOut,
    Unusable,
)
from wayline.tool_registry.servers.learn_tools import LearnedTools, ToolLearner
from wayline.tool_registry.servers.reconnect_wait import ReconnectWait
from wayline.tool_registry.servers.redacted_results import redacted_result
from wayline.tool_registry.servers.server_connection import ServerConnection
from wayline.tool_registry.servers.tool_changes import ToolChanges
from wayline.tool_registry.settings import Settings

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import CallToolResult, InputRequiredResult

log = structlog.get_logger()

Question: TypeAlias = "Callable[[Client], Awaitable[dict[str, Any]]]"

CALLED_AFTER_S = 0.8
"""How long an away server is left alone though calls wait for it: they wait longer, so one more try is in time."""
OVERTIME_S = 5.0
"""How long after a tool's timeout its connection may still hold a call up."""
PROBLEM_MAX = 300
"""The most characters of a server's error that are reported."""


class _RequestStopped(Exception):
    """A request that was stopped before it left."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__(str(error))
        self.error = error


class McpServer(ServerConnection):
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
        super().__init__(server, settings, confined=confined, authorize=authorize)
        self._learner = ToolLearner(
            server, settings, arguments, pins=pins, without_secrets=self._transport.without_secrets
        )
        self._under_way = 0
        self._changes = ToolChanges(self.learn_again)
        self._idle = asyncio.Event()
        self._idle.set()

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
            async with asyncio.timeout(grace_s):
                await self._idle.wait()
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

    async def _run(self) -> None:
        wait = ReconnectWait(most_s=self._settings.reconnect_wait_max_s)
        while not self._closing:
            try:
                await load()
                await self._recall()
                async with self._transport.opened():
                    await self._keep_connected(wait)
            except Exception as error:
                # A file that is missing, or a definition that nobody can read, may be mended while this goes on.
                await self._wait_to_connect(wait, reason(error))

    async def _keep_connected(self, wait: ReconnectWait) -> None:
        while not self._closing:
            self._lost = False
            self._woken.clear()
            try:
                await self._stay_connected()
                why = self._transport.ended or "its connection broke"
            except Exception as error:
                # A server is foreign code: nothing that it does may end the task that would connect it again.
                why = self._transport.ended or reason(error)
            await self._wait_to_connect(wait, why)

    async def _wait_to_connect(self, wait: ReconnectWait, why: str) -> None:
        """Offer the server to no call, and say why, until it is tried again."""
        self._problem = self.hide(why)
        wait_s = wait.after(self._leave()) * random.uniform(0.5, 1)
        if self._closing:
            return
        log.warning("mcp server is away", server=self.name, why=self._problem)
        # A program is left alone for all of it: its starts cost this machine.
        alone_s = min(wait_s, CALLED_AFTER_S) if self._transport.over_http else wait_s
        await asyncio.sleep(alone_s)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s - alone_s):
                await self._called.wait()

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
        self.tools, self.left_out, self.withheld = dict(learned.tools), dict(learned.left_out), dict(learned.withheld)
        self.names, self.instructions = dict(learned.names), learned.instructions
