"""A call of a tool outside of any job: by the registry, with its ledger and its limits."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import anyio
from mcp_types import CallToolRequestParams, CallToolResult, InputRequiredResult
from opentelemetry import trace

from wayline.contracts.errors import Bug, Reject, Retry
from wayline.contracts.tools import CallTool, CancelTool, InputAnswer, InputRequest, ToolDefinition, ToolReply
from wayline.gateway.errors import Declined
from wayline.gateway.handlers.mcp.call_ids import CALLS_MAX
from wayline.gateway.handlers.mcp.offers import needs_approval
from wayline.gateway.handlers.mcp.paid_calls import PaidCalls
from wayline.gateway.handlers.mcp.requests import McpRequest
from wayline.gateway.handlers.mcp.results import failure, result_of
from wayline.gateway.handlers.mcp.user_questions import ToolRound, UserQuestions, round_of
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.keys import Caller
from wayline.telemetry import names

ASK_WAIT_S: Final = 10.0
"""How long the registry is waited for at once; it answers `in_progress` before."""
ASK_AGAIN_S: Final = 0.2
STEP: Final = 1


class ToolCalls:
    """Calls tools of the registry for MCP clients."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._paid = PaidCalls(gateway)

    async def call(
        self, request: McpRequest, tool: ToolDefinition, params: CallToolRequestParams, *, has_output_schema: bool
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool to its end, or until its server asks the client's user; a client that cancels stops it."""
        if needs_approval(tool):
            message = (
                f"a call of {tool.name} needs a person's approval, which only a job can wait for: "
                "have an agent that may use it do this, with run_agent"
            )
            return failure(message, code="needs_approval")
        if request.user_id is not None and request.caller.user_id is None:
            request.require("write", to="call tools for a user")
        trace.get_current_span().set_attribute(names.EFFECT, tool.effect)
        made, questions = round_of(params), request.questions
        while True:
            asked = self._asked(request, tool, params.arguments or {}, made)
            if (refused := await self._paid.hold(asked, tool)) is not None:
                return failure(refused, code="no_budget")
            try:
                reply = await self._made(asked, tool)
            except asyncio.CancelledError:
                if request.closes_to_cancel:
                    with anyio.CancelScope(shield=True):
                        await self._gateway.bus.send(CancelTool(tenant=asked.tenant, key=asked.key))
                raise
            if reply.input is None or not questions.possible or made.number == CALLS_MAX:
                return result_of(reply, tool, has_output_schema=has_output_schema, objects_only=request.objects_only)
            if questions.end_the_call:
                return questions.as_result(reply.input, made)
            made = ToolRound(made.number + 1, await self._answer(questions, reply.input, request.caller))

    async def _answer(self, questions: UserQuestions, asked: InputRequest, caller: Caller) -> InputAnswer:
        """Return what the client's user answers. Raises Declined where no answer comes in time."""
        self._gateway.streams.require_room(caller)
        most = self._gateway.settings.mcp_wait_max_s
        with self._gateway.streams.follower(caller) as follower:
            try:
                async with asyncio.timeout(most):
                    return await questions.ask(asked)
            except TimeoutError:
                raise Declined(why=f"there was none within {most:g} s") from None
            except asyncio.CancelledError:
                if not follower.absorb_stop():
                    raise
                raise Declined(why="this gateway is stopping; call the tool again") from None

    async def _made(self, asked: CallTool, tool: ToolDefinition) -> ToolReply:
        """Return what became of a call, and have counted what it charged."""
        if tool.charge is not None:
            return await asyncio.shield(self._paid.follow(asked, tool, self._reply(asked, tool)))
        reply = await self._reply(asked, tool)
        self._paid.count(asked, tool, reply)
        return reply

    def _asked(self, request: McpRequest, tool: ToolDefinition, arguments: dict[str, Any], made: ToolRound) -> CallTool:
        tenant = request.caller.tenant
        return CallTool(
            tenant=tenant,
            key=request.ids.tool_key(tenant, made.number),
            job_id=request.ids.call_id,
            step=STEP,
            call="1",
            tool=tool.name,
            arguments=arguments,
            deadline=datetime.now(UTC) + timedelta(seconds=tool.timeout_s),
            user_id=request.user_id,
            answer=made.answer,
            direct=True,
            form="whole",
        )

    async def _reply(self, asked: CallTool, tool: ToolDefinition) -> ToolReply:
        """Ask until the registry knows the outcome: with the same key, so that the tool acts once."""
        while True:
            late = datetime.now(UTC) > asked.deadline
            try:
                reply = await self._gateway.bus.ask(asked, ToolReply, timeout_s=ASK_WAIT_S)
            except Retry as error:
                if late:
                    raise
                await asyncio.sleep(max(ASK_AGAIN_S, error.after_s))
                asked = asked.model_copy(update={"asked_before": True})
                continue
            except Reject as error:
                if error.code != Bug.code or tool.is_free_read:
                    raise
                # The registry failed before, while or after the tool acted: only its ledger can tell.
                if late:
                    return ToolReply(status="unknown", effect=tool.effect)
                await asyncio.sleep(ASK_AGAIN_S)
                continue
            if reply.status != "in_progress":
                return reply
