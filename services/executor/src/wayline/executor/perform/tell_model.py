"""What a model is told before a call, what it is offered, and how its prompt compares with the last one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wayline.contracts import events as e
from wayline.contracts.tools import ToolDefinition
from wayline.executor.hold.log_writer import LogWriter
from wayline.executor.prompt.assemble import PromptHashes
from wayline.executor.prompt.builtin_tools import pin
from wayline.executor.prompt.cache_guard import cache_break
from wayline.executor.prompt.notes import Notes, forgotten, found, guidance, known, reminder
from wayline.executor.prompt.tool_loading import always_loaded, deferred_tokens
from wayline.executor.prompt.working_context import update
from wayline.journal import Job
from wayline.llm import ModelRequest
from wayline.telemetry import metrics


def note_news(writer: LogWriter, listed: Sequence[ToolDefinition], notes: Notes) -> None:
    """Append what the model does not know yet.

    Only ever between the last answer's tool results and the next call: nothing may stand between a call and its result.
    """
    if (entities := update(writer.job)) is not None:
        writer.note(e.ContextInjected, note=entities)
    if writer.job.tools.offered is not None and (new := found(writer.job, listed)):
        writer.note(e.ToolsDiscovered, tools=new)
        writer.note(e.ContextInjected, note=guidance(writer.job, new))
    elif (names := reminder(writer.job)) is not None:
        writer.note(e.ContextInjected, note=names)
    if again := forgotten(writer.job, listed):
        writer.note(e.ContextInjected, note=guidance(writer.job, again))
    for note in notes(writer.job):
        if not known(writer.job, note):
            writer.note(e.ContextInjected, note=note)


def offered(job: Job, listed: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
    """Return a call's tools: those of the job's first call for good, because they are the head of every prefix."""
    if job.tools.offered is not None:
        return job.tools.offered
    config, submitted = job.routing.config, job.life.submitted
    assert config is not None and submitted is not None
    loaded = always_loaded(config, listed, required=submitted.options.required_tools)
    names = {tool.name for tool in loaded}
    deferred = [tool for tool in listed if tool.name not in names] if len(loaded) < len(listed) else ()
    return pin(config.tools, loaded, code=config.code, agents=job.routing.agents, deferred=deferred)


def compared(
    job: Job,
    request: ModelRequest,
    prefix: tuple[e.Segment, ...],
    hashes: PromptHashes,
    *,
    listed: Sequence[ToolDefinition] = (),
) -> dict[str, Any]:
    """Return what the log says of a prompt whose segments `hashes` has just made, beside the call before it.

    `listed` are all tools that the job may use, also those that it has to find.

    As fields of `ModelRequested`.
    """
    broken = cache_break(job, prefix, hashes)
    if broken:
        metrics.cache_breaks.labels(broken).inc()
    return {
        "tools": request.tools if job.tools.offered is None else None,
        "deferred_tokens": deferred_tokens(job, request.tools, listed),
        "prefix": prefix,
        "cache_break": broken,
    }
