"""One request to one tool, under one span."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from wayline.contracts.tools import CallTool, Effect, ToolReply
from wayline.telemetry import Telemetry, names
from wayline.tool_registry.calls.asked_input import asked_input, is_question
from wayline.tool_registry.calls.results import (
    DIRECT,
    KEY,
    ORIGIN,
    RECONCILE,
    RERANK,
    TENANT,
    USER,
    failed,
    reconciled,
    reply_of,
)
from wayline.tool_registry.calls.server_answers import BROKE, UNREAD
from wayline.tool_registry.calls.tool_servers import Leaving, NamedServer, TellProgress, ToolRequest
from wayline.tool_registry.definitions.tool_catalogue import Tool
from wayline.tool_registry.errors import AnswerLost, Busy, Unusable

if TYPE_CHECKING:
    from mcp_types import CallToolResult, InputRequiredResult


@dataclass(frozen=True)
class BoundTool:
    """A tool, its server, and what is needed to call it."""

    tool: Tool
    server: NamedServer
    telemetry: Telemetry
    max_bytes: int
    tell: TellProgress | None = None
    """Hears how far a call of it is."""

    async def call(self, ask: CallTool, *, attempt: int, leaving: Leaving | None = None) -> ToolReply:
        """Send the request once; an answer that reports a failure is an answer.

        `leaving` is called last before the request is sent. Raises NotBegun, AnswerLost or the error of `leaving`.
        """
        effect, started = self.tool.effect, time.perf_counter()
        with self._span(self.tool.offered_as, attempt) as span:
            try:
                result = await self._send(self.tool.offered_as, ask, {}, leaving)
                if effect is Effect.READ and result.meta and result.meta.get(UNREAD) == BROKE:
                    raise AnswerLost(BROKE)
                took: dict[str, Any] = {"effect": effect, "attempts": attempt, "duration_ms": _ms_since(started)}
                if is_question(result):
                    reply = asked_input(result, hide=self.server.hide, **took)
                else:
                    told = {"trusted": self.tool.trusted, "untrusted": self.tool.definition.untrusted}
                    reply = reply_of(result, max_bytes=self.max_bytes, form=ask.form, **told, **took)
            except Unusable as error:
                if isinstance(error, Busy) and effect is Effect.READ:
                    raise
                taken_ms = _ms_since(started)
                reply = failed(error.code, str(error), effect=effect, attempts=attempt, duration_ms=taken_ms)
            if reply.error:
                # A refused key is often repeated in the refusal.
                error = reply.error.model_copy(update={"message": self.server.hide(reply.error.message)})
                reply = reply.model_copy(update={"error": error})
                span.set_attribute(names.ERROR_TYPE, error.code)
        if reply.strangers is None:
            reply = reply.model_copy(update={"strangers": self.tool.definition.untrusted})
        return reply

    async def ask_outcome(self, ask: CallTool, *, attempt: int) -> ToolReply | None:
        """Ask the tool what became of the key: its outcome, or None where nothing has begun.

        Raises NotBegun or AnswerLost.
        """
        name = self.tool.reconcile_with
        with self._span(name, attempt):
            result = await self._send(name, ask, {RECONCILE: True}, None)
        if is_question(result):
            raise Unusable("a reconcile answer asks nobody for input")
        try:
            found, content = reconciled(result)
        except ValueError as error:
            raise Unusable(str(error)) from error
        if not found:
            return None
        reply = reply_of(result, effect=Effect.RECONCILE, trusted=False, max_bytes=self.max_bytes)
        return reply.model_copy(update={"content": content, "images": (), "attempts": attempt})

    async def _send(
        self, name: str, ask: CallTool, meta: dict[str, Any], leaving: Leaving | None
    ) -> CallToolResult | InputRequiredResult:
        about = {KEY: ask.key, **meta}
        if self.server.inside:
            about |= {TENANT: ask.tenant, DIRECT: ask.direct, USER: ask.user_id, ORIGIN: ask.origin, RERANK: ask.rerank}
        request = ToolRequest(
            name,
            self.tool.as_offered(ask.arguments),
            meta=about,
            timeout_s=self.tool.definition.timeout_s,
            effect=self.tool.effect is not Effect.READ,
            leaving=leaving,
            answer=ask.answer,
            asked=ask,
            tell=self.tell,
        )
        return await self.server.call(request)

    def _span(self, name: str, attempt: int) -> Any:
        return self.telemetry.calling(
            f"tools/call {name}",
            {
                names.MCP_METHOD: "tools/call",
                names.GEN_AI_TOOL_NAME: self.tool.name,
                names.EFFECT: self.tool.effect.value,
                names.ATTEMPT: attempt,
            },
        )


def repeated(ask: CallTool, *, within_s: float) -> CallTool:
    """Return a call whose repeat may begin until so long after its deadline."""
    return ask.model_copy(update={"deadline": ask.deadline + timedelta(seconds=within_s)})


def _ms_since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
