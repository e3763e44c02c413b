"""What is written down before a model is called: what it has to be told, and the call itself with what it sends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wayline.contracts import events as e
from wayline.contracts.tools import ToolDefinition
from wayline.executor.guard import cache_break
from wayline.executor.notes import Notes, found, guidance, known, reminder
from wayline.executor.own_tools import pin
from wayline.executor.pen import Pen
from wayline.executor.prompt import Prints, assemble
from wayline.telemetry import metrics


def note_news(pen: Pen, listed: Sequence[ToolDefinition], notes: Notes) -> None:
    """Append what the model does not know yet.

    Only ever between the last answer's tool results and the next call: nothing may stand between a call and its result.
    """
    if pen.job.tools is not None and (new := found(pen.job, listed)):
        pen.note(e.ToolsDiscovered, tools=new)
        pen.note(e.ContextInjected, note=guidance(pen.job, new))
    elif (names := reminder(pen.job)) is not None:
        pen.note(e.ContextInjected, note=names)
    for note in notes(pen.job):
        if not known(pen.job, note):
            pen.note(e.ContextInjected, note=note)


def note_request(
    pen: Pen, prints: Prints, listed: Sequence[ToolDefinition], *, span: str, attempt: dict[str, Any]
) -> None:
    """Write the intent; a job's first call fixes its tools for good, because they are the head of every prefix."""
    job = pen.job
    assert job.route is not None and job.config is not None
    fixed = pin(job.config.tools, listed) if job.tools is None else None
    prefix = prints.segments(assemble(job, fixed))
    broken = cache_break(job, prefix, prints)
    if broken:
        metrics.cache_breaks.labels(broken).inc()
    pen.note(
        e.ModelRequested,
        span,
        **attempt,
        provider=job.route.provider,
        model=job.route.model,
        tools=fixed,
        prefix=prefix,
        cache_break=broken,
    )
