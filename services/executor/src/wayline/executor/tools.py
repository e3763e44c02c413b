"""The tool registry, asked on behalf of a held job."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from wayline.chassis import Bus, Failpoint, reach
from wayline.contracts.errors import Bug, Reject, Retry
from wayline.contracts.events import DecisionMade
from wayline.contracts.tools import (
    CallTool,
    CancelTool,
    Effect,
    ListTools,
    ResolveTool,
    ToolDefinition,
    ToolError,
    ToolList,
    ToolReply,
)
from wayline.journal import Call, Job
from wayline.llm import arguments
from wayline.telemetry import Home

ASK_AGAIN_S = 0.2
ASK_AFTER_BUG_S = 1.0
"""The pause after the registry answered that it failed itself."""
LISTINGS_MAX = 1_024


class Tools:
    """The tool registry, asked until it knows."""

    def __init__(self, bus: Bus, *, fresh_s: float, wait_s: float) -> None:
        self._bus = bus
        self._fresh_s = fresh_s
        self._wait_s = wait_s
        self._listed: dict[tuple[str, tuple[str, ...]], tuple[float, tuple[ToolDefinition, ...]]] = {}

    def known(self, job: Job) -> tuple[ToolDefinition, ...] | None:
        """The tools the job's agent may use, where a listing is fresh enough; None: they must be asked for."""
        assert job.config is not None
        until, tools = self._listed.get((job.tenant, job.config.tools), (0.0, ()))
        return tools if until > time.monotonic() or not job.config.tools else None

    async def offered(self, job: Job) -> tuple[ToolDefinition, ...]:
        """The tools the job's agent may use, sorted by name; waits for a registry that is away."""
        assert job.config is not None
        key = (job.tenant, job.config.tools)
        while True:
            try:
                listed = await self._bus.ask(ListTools(tenant=job.tenant, patterns=job.config.tools), ToolList)
                break
            except Retry as error:
                await asyncio.sleep(max(ASK_AGAIN_S, error.after_s))
        if len(self._listed) >= LISTINGS_MAX:
            self._listed.clear()
        # The same object as long as it says the same, so that jobs can tell at a glance that nothing is new.
        _, before = self._listed.get(key, (0.0, listed.tools))
        tools = before if before == listed.tools else listed.tools
        self._listed[key] = (time.monotonic() + self._fresh_s, tools)
        return tools

    async def call(self, job: Job, call: Call, *, timeout_s: float) -> ToolReply:
        """Run a tool call to its end, asking again with the same key while nobody answers: the ledger knows."""
        assert call.key is not None and call.span is not None
        request = CallTool(
            tenant=job.tenant,
            key=call.key,
            job_id=job.job_id,
            step=job.step,
            call=call.wanted.call,
            tool=call.meant.tool,
            arguments=fitted(job, call),
            deadline=datetime.now(UTC) + timedelta(seconds=timeout_s),
            user_id=job.submitted.user_id if job.submitted else None,
        )
        headers = Home(call.span.trace_id, call.span.span_id).headers()
        while True:
            try:
                reach(Failpoint.EXECUTOR_TOOL_BEFORE)
                reply = await self._bus.ask(request, ToolReply, timeout_s=self._wait_s, headers=headers)
                reach(Failpoint.EXECUTOR_TOOL_AFTER)
            except Retry as error:
                await asyncio.sleep(max(ASK_AGAIN_S, error.after_s))
                continue
            except Reject as error:
                if error.code != Bug.code or _is_read(job, call):
                    return ToolReply(status="failed", error=ToolError(code="refused", message=str(error)))
                # The registry failed before, while or after the tool acted: only its ledger can tell.
                if datetime.now(UTC) > request.deadline:
                    return ToolReply(status="unknown", effect=Effect.ONCE)
                await asyncio.sleep(ASK_AFTER_BUG_S)
                continue
            if reply.status != "in_progress":
                return reply

    async def resolve(self, job: Job, call: Call, decision: DecisionMade) -> ToolReply:
        """Write a human's decision into the ledger; the answer is what the ledger then says of the call."""
        assert call.key is not None
        outcome = "succeeded" if decision.outcome == "succeeded" else "failed"
        content = decision.content or ("" if decision.outcome != "expired" else "nobody decided in time")
        request = ResolveTool(tenant=job.tenant, key=call.key, outcome=outcome, content=content)
        while True:
            try:
                return await self._bus.ask(request, ToolReply, timeout_s=self._wait_s)
            except Retry as error:
                await asyncio.sleep(max(ASK_AGAIN_S, error.after_s))

    async def cancel(self, job: Job, call: Call) -> None:
        """Ask every replica to stop a call; whether it acted is the ledger's to say."""
        if call.key is not None:
            await self._bus.send(CancelTool(tenant=job.tenant, key=call.key))


def fitted(job: Job, call: Call) -> dict[str, Any]:
    """A call's arguments with plainly wrong types mended; what cannot be is the registry's to refuse, by its name."""
    wanted = call.meant
    definition = job.tool(wanted.tool)
    return arguments.fit(wanted.arguments, definition.input_schema) if definition else wanted.arguments


def _is_read(job: Job, call: Call) -> bool:
    definition = job.tool(call.meant.tool)
    return definition is not None and definition.effect is Effect.READ
