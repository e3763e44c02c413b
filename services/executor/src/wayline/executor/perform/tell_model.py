"""What a model is told before a call."""

from __future__ import annotations

from collections.abc import Sequence

from wayline.contracts import events as e
from wayline.contracts.memory import FactsRecalled
from wayline.contracts.tools import ToolDefinition
from wayline.executor.decide.last_call import last_turn
from wayline.executor.decide.prepare_call import offered_tools
from wayline.executor.hold.log_writer import LogWriter
from wayline.executor.perform.job_run import JobRun
from wayline.executor.prompt.memory_notes import asks_for_memory, memory_note, question
from wayline.executor.prompt.notes import Notes, forgotten, found, guidance, known, reminder
from wayline.executor.prompt.working_context import update
from wayline.journal import Job


def note_news(writer: LogWriter, listed: Sequence[ToolDefinition], notes: Notes) -> None:
    """Append what the model does not know yet.

    Only ever between the last answer's tool results and the next call: nothing may stand between a call and its result.
    """
    if (entities := update(writer.job)) is not None:
        writer.note(e.ContextInjected, note=entities)
    if new := _found(writer.job, listed):
        writer.note(e.ToolsDiscovered, tools=new)
        writer.note(e.ContextInjected, note=guidance(writer.job, new))
    elif (names := reminder(writer.job)) is not None:
        writer.note(e.ContextInjected, note=names)
    if again := forgotten(writer.job, listed):
        writer.note(e.ContextInjected, note=guidance(writer.job, again))
    if (last := last_turn(writer.job)) is not None:
        writer.note(e.ContextInjected, note=last)
    for note in notes(writer.job):
        if not known(writer.job, note):
            writer.note(e.ContextInjected, note=note)


async def recalled(run: JobRun) -> FactsRecalled | None:
    """Return what is remembered of a job's user, where its next call should be told; None: nothing, or it is told."""
    if not asks_for_memory(run.writer.job):
        return None
    return await run.held.listening(run.services.memories.recall(question(run.writer.job)))


def note_memory(writer: LogWriter, found: FactsRecalled | None) -> None:
    """Append what is remembered behind the user's message; from then on the log is what says it."""
    if found is None or (told := memory_note(writer.job, found)) is None:
        return
    writer.note(e.MemoryInjected, note=told.note, facts=told.facts, gone=told.gone, tokens=told.tokens)


def _found(job: Job, listed: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
    """Return the tools that are news to the model; before a job's first call only changes of what it knows already."""
    if job.tools.offered is not None:
        return found(job, listed)
    return found(job, listed, offered_tools(job, listed)) if job.tools.discovered else ()
