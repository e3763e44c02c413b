"""A call of a tool outside of any job: by the registry, with its ledger and its limits."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import anyio
from mcp_types import CallToolRequestParams, CallToolResult, InputRequiredResult
from opentelemetry import trace

from wayline.contracts.tools import CallTool, CancelTool, InputAnswer, InputRequest, ToolDefinition
from wayline.gateway.errors import ApprovalNeeded, Declined
from wayline.gateway.handlers.mcp.call_ids import CALLS_MAX
from wayline.gateway.handlers.mcp.direct_calls import DirectCalls
from wayline.gateway.handlers.mcp.requests import McpRequest
from wayline.gateway.handlers.mcp.results import result_of
from wayline.gateway.handlers.mcp.tool_rights import needs_approval
from wayline.gateway.handlers.mcp.user_questions import ToolRound, UserQuestions, round_of
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.keys import Caller
from wayline.telemetry import names

STEP: Final = 1


class ToolCalls:
    """Calls tools of the registry for MCP clients."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._calls = DirectCalls(gateway)

    async def call(
        self, request: McpRequest, tool: ToolDefinition, params: CallToolRequestParams, *, has_output_schema: bool
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool to its end, or until its server asks the client's user; a client that cancels stops it."""
        if needs_approval(tool):
            raise ApprovalNeeded(tool=tool.name, how="run_agent")
        if request.user_id is not None and request.caller.user_id is None:
            request.require("write", to="call tools for a user")
        trace.get_current_span().set_attribute(names.EFFECT, tool.effect)
        made, questions = round_of(params), request.questions
        while True:
            asked = self._asked(request, tool, params.arguments or {}, made)
            try:
                reply = await self._calls.once(asked, tool)
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
