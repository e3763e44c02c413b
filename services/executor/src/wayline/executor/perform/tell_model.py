"""What a model is told before a call."""

from __future__ import annotations

from collections.abc import Sequence

from wayline.contracts import events as e
from wayline.contracts.tools import ToolDefinition
from wayline.executor.hold.log_writer import LogWriter
from wayline.executor.prompt.notes import Notes, forgotten, found, guidance, known, reminder
from wayline.executor.prompt.working_context import update


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
