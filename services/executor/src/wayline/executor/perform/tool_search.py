"""Finds tools for a model, and loads those that it did not know."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from wayline.contracts import events as e
from wayline.contracts.searched_tools import FoundTools
from wayline.contracts.tools import ToolDefinition, ToolError, ToolReply
from wayline.executor.hold.log_writer import Draft, draft
from wayline.executor.perform.job_run import JobRun
from wayline.executor.prompt.tool_discovery import search_of, tell_found, tell_unknown, tell_unloaded
from wayline.journal import Call
from wayline.llm.tokens import estimate

SILENT = "the tools cannot be searched now: try it again later, or go on without"


class SearchResult(NamedTuple):
    """Tools that a call has found, or the one that it named without knowing it."""

    tools: FoundTools | ToolDefinition
    duration_ms: float


async def find_tools(run: JobRun, call: Call) -> SearchResult | ToolReply:
    """Search for tools: no ledger, because a repeat does nothing."""
    asked = search_of(call.meant)
    if isinstance(asked, ToolReply):
        return asked
    since_s = time.monotonic()
    tools = await run.services.tools.search(run.writer.job, asked.query, at_most=asked.at_most)
    if tools is None:
        return ToolReply(status="failed", error=ToolError(code="unavailable", message=SILENT), strangers=False)
    return SearchResult(tools, (time.monotonic() - since_s) * 1_000)


async def load_tool(run: JobRun, call: Call) -> SearchResult | ToolReply:
    """Return the definition of a tool that the model called without knowing it.

    The call is not made: nobody knew its arguments or whether it needs an approval.
    """
    job = run.writer.job
    listed = run.services.tools.known(job) or await run.services.tools.offered(job)
    definition = next((tool for tool in listed if tool.name == call.meant.tool), None)
    return SearchResult(definition, 0.0) if definition is not None else tell_unknown(call.meant.tool, listed)


def found(run: JobRun, step: int, call: Call, came: SearchResult) -> list[Draft]:
    """Return what a model is told of the tools that were found, and that it knows them from now on."""
    job = run.writer.job
    named: dict[str, Any] = {"step": step, "call": call.wanted.call, "tool": call.meant.tool}
    by = f"{step}/{call.wanted.call}"
    if isinstance(came.tools, ToolDefinition):
        error = ToolError(code="refused", message=tell_unloaded(came.tools))
        return [
            draft(e.ToolsDiscovered, tools=(came.tools,), call=by),
            draft(e.ToolCompleted, call.span, **named, status="failed", error=error),
        ]
    told = tell_found(job, came.tools)
    ended = draft(
        e.ToolCompleted,
        call.span,
        **named,
        status="success",
        content=told.content,
        loaded=told.loaded,
        duration_ms=came.duration_ms,
        size_bytes=len(told.content.encode()),
        tokens=estimate(told.content),
        cost_usd=came.tools.cost_usd,
    )
    return [draft(e.ToolsDiscovered, tools=told.tools, call=by), ended] if told.tools else [ended]
