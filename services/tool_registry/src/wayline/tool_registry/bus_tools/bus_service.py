"""One service of a tenant that offers tools on the bus: which of its instances live, and calls of its tools."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import structlog
from nats.aio.msg import Msg
from pydantic import ValidationError

from wayline.contracts import headers as h
from wayline.contracts.bus_tools import (
    ANNOUNCED_FOR_S,
    BODY_MAX,
    OUTCOME_UNKNOWN,
    SILENT_MAX_S,
    AnnounceTools,
    InvokeResult,
    InvokeTool,
    StopInvocation,
)
from wayline.contracts.errors import Problem
from wayline.telemetry import carried
from wayline.tool_registry.bus_tools.bus_calls import BusCalls
from wayline.tool_registry.calls.results import COST, RECONCILE
from wayline.tool_registry.calls.server_answers import SHOWN_MAX_CHARS, text_in, unread
from wayline.tool_registry.calls.tool_servers import TellProgress, ToolRequest
from wayline.tool_registry.connection.mcp_library import load
from wayline.tool_registry.definitions.announced_tools import announced_tools
from wayline.tool_registry.definitions.arguments import Arguments
from wayline.tool_registry.definitions.definitions import INSTRUCTIONS
from wayline.tool_registry.definitions.tool_catalogue import Tool, own_name
from wayline.tool_registry.errors import AnswerLost, CallError, NotBegun, Unusable
from wayline.tool_registry.settings import Settings

if TYPE_CHECKING:
    from mcp_types import CallToolResult

log = structlog.get_logger()

INSTANCES_MAX = 1_000
SEND_AGAIN_S = 0.05
"""The pause before a call that no instance has begun is sent again."""
NOT_BEGUN = 503
"""The status of the Problem with which a service says that a call will not begin."""


@dataclass
class Instance:
    """A process of the service, with what it announced last."""

    announcement: AnnounceTools
    tools: dict[str, Tool]
    left_out: dict[str, str]
    until: float
    withheld: dict[str, str]
    """Why tools of it, by the service's own names, and its instructions must not be used."""


class BusService:
    """A service that announces its tools; its instances share its calls."""

    inside = False

    def __init__(
        self,
        tenant: str,
        name: str,
        calls: BusCalls,
        settings: Settings,
        arguments: Arguments,
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.tenant = tenant
        self.name = name
        self.last_heard = now()
        self.last_seen = datetime.now(UTC)
        self.tried = asyncio.Event()
        self.tried.set()
        self.listed = self.tried
        self.known = True
        self._calls = calls
        self._settings = settings
        self._arguments = arguments
        self._now = now
        self._instances: dict[str, Instance] = {}
        self._announced = asyncio.Event()

    @property
    def tools(self) -> dict[str, Tool]:
        """Return the tools that the newest of its instances offers."""
        newest = self._newest()
        if newest is None:
            return {}
        return {name: tool for name, tool in newest.tools.items() if tool.offered_as not in newest.withheld}

    @property
    def withheld(self) -> dict[str, str]:
        """Return why tools wait for an approval, by our names for them."""
        newest = self._newest()
        return (
            {} if newest is None else {own_name(self.name, name): why for name, why in newest.withheld.items() if name}
        )

    @property
    def instructions(self) -> str:
        newest = self._newest()
        return "" if newest is None or INSTRUCTIONS in newest.withheld else newest.announcement.instructions

    @property
    def newest(self) -> AnnounceTools | None:
        """Return what the newest of its instances announced last."""
        newest = self._newest()
        return None if newest is None else newest.announcement

    @property
    def instances(self) -> int:
        """Return how many of its processes announce themselves."""
        self._newest()
        return len(self._instances)

    @property
    def problem(self) -> str | None:
        """Return why it cannot be called now; None: it can."""
        return None if self._newest() is not None else "no instance of it announces its tools"

    def hold(self, withheld: dict[str, str]) -> None:
        """Hold tools of the newest instance back, and let go of its others."""
        if (newest := self._newest()) is not None:
            newest.withheld = withheld

    def hear(self, announcement: AnnounceTools, withheld: dict[str, str]) -> dict[str, str]:
        """Note what an instance announces and what of it is withheld; return why tools of it are left out."""
        self.last_heard, self.last_seen = self._now(), datetime.now(UTC)
        known = self._instances.get(announcement.instance)
        if announcement.leaving:
            self._instances.pop(announcement.instance, None)
            return {}
        if known is not None and known.announcement.tools == announcement.tools:
            tools, left_out = known.tools, known.left_out
        else:
            tools, left_out = announced_tools(announcement, self._arguments, retry_after_s=self._settings.retry_after_s)
            for name, why in left_out.items():
                log.warning("tool left out", tenant=self.tenant, server=self.name, tool=name, why=why)
        if known is not None or len(self._instances) < INSTANCES_MAX:
            until = self._now() + ANNOUNCED_FOR_S
            self._instances[announcement.instance] = Instance(announcement, tools, left_out, until, withheld)
        self._announced.set()
        return left_out

    def hide(self, text: str) -> str:
        """Return a text as it is: the service is sent no secrets."""
        return text

    def tell_cancelled(self, key: str) -> None:
        """Tell its instances that a call was cancelled: one that runs it may end early."""
        self._calls.send_soon(StopInvocation(tenant=self.tenant, service=self.name, key=key))

    async def ready(self, within_s: float) -> bool:
        """Return whether an instance lives, after waiting a little for one that is being started again."""
        if self.problem is not None:
            self._announced.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await self._announced.wait()
        return self.problem is None

    async def call(self, request: ToolRequest) -> CallToolResult:
        """Call a tool. Raises NotBegun, AnswerLost, TimedOut, Unusable, or the error that stops the request.

        A call that an instance did not begin is sent again for a moment: another one may have room for it, or the tool.
        """
        if not await self.ready(self._settings.available_within_s):
            raise NotBegun(f"the service {self.name!r} is away: {self.problem}")
        await load()
        until = self._now() + self._settings.available_within_s
        while True:
            invocation = self._invocation(request)
            body = invocation.to_wire()
            if len(body) > BODY_MAX:
                raise Unusable(f"the arguments take {len(body)} bytes; a tool over the bus takes at most {BODY_MAX}")
            if (stop := await request.stopped()) is not None:
                raise stop
            try:
                return await self._send(invocation, body, request.tell)
            except NotBegun:
                if self._now() >= until:
                    raise
            await asyncio.sleep(SEND_AGAIN_S)

    async def _send(self, invocation: InvokeTool, body: bytes, tell: TellProgress | None) -> CallToolResult:
        headers = {h.SCHEMA: invocation.schema_id(), h.TENANT: self.tenant, **carried()}
        answer = await self._calls.ask(
            invocation.subject,
            body,
            headers,
            timeout_s=invocation.timeout_s,
            silent_max_s=SILENT_MAX_S,
            tell=tell,
        )
        return _result(answer)

    def _invocation(self, request: ToolRequest) -> InvokeTool:
        asked = request.asked
        assert asked is not None
        latest = datetime.now(UTC) + timedelta(seconds=request.timeout_s)
        return InvokeTool(
            tenant=self.tenant,
            service=self.name,
            tool=request.tool,
            arguments=request.arguments,
            key=asked.key,
            job_id=asked.job_id,
            step=asked.step,
            call=asked.call,
            user_id=asked.user_id,
            timeout_s=request.timeout_s,
            deadline=min(asked.deadline, latest),
            schema_sha256=self._schema_sha256(request.tool),
            reconcile=bool(request.meta.get(RECONCILE)),
        )

    def _schema_sha256(self, tool: str) -> str:
        """Return the hash of the schema by which the arguments were checked; empty where no instance is left."""
        offered = () if (newest := self.newest) is None else newest.tools
        return next((one.schema_sha256 for one in offered if one.name == tool), "")

    def _newest(self) -> Instance | None:
        now = self._now()
        for name in [name for name, one in self._instances.items() if one.until <= now]:
            del self._instances[name]
        started = ((one.announcement.started_at, name) for name, one in self._instances.items())
        newest = max(started, default=None)
        return None if newest is None else self._instances[newest[1]]


def _result(answer: Msg) -> CallToolResult:
    """Read what a service answered.

    Raises NotBegun where it says that the call will not begin, AnswerLost where it does not know what the tool did, and
    Unusable for every other error. Whatever else came is the result of a tool that has run.
    """
    from mcp_types import CallToolResult, TextContent

    if h.ERROR in (answer.headers or {}):
        raise _error(answer)
    try:
        result = InvokeResult.model_validate_json(answer.data)
    except ValidationError:
        return CallToolResult.model_validate(unread(text_in(answer.data), "it is no result of a tool"), by_name=False)
    text = result.text if result.error is None else result.error
    meta = {} if result.cost_usd is None else {COST: str(result.cost_usd)}
    content = [TextContent(type="text", text=text)] if text or result.structured is None else []
    return CallToolResult(
        content=list(content), structured_content=result.structured, is_error=result.error is not None, _meta=meta
    )


def _error(answer: Msg) -> CallError:
    try:
        problem = Problem.model_validate_json(answer.data)
    except ValidationError:
        return Unusable(text_in(answer.data)[:SHOWN_MAX_CHARS] or "the service failed without saying why")
    if (answer.headers or {})[h.ERROR] == OUTCOME_UNKNOWN:
        return AnswerLost(problem.detail)
    return NotBegun(problem.detail) if problem.status == NOT_BEGUN else Unusable(problem.detail)
