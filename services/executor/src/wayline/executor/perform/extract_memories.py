"""Has a helper model name the facts that last in what a user said, and has them judged and kept: each of it once."""

from __future__ import annotations

from collections.abc import Sequence

from wayline.chassis import Failpoint, reach
from wayline.contracts import events as e
from wayline.contracts.errors import Reject
from wayline.executor.decide import extraction
from wayline.executor.decide.actions import ExtractFacts, SaveFacts
from wayline.executor.hold.held_job import Cancelled
from wayline.executor.hold.log_writer import Draft, draft
from wayline.executor.perform.auxiliary_call import AuxiliaryCall, NotMade, ask_aside, next_aux_id, not_made
from wayline.executor.perform.job_run import JobRun
from wayline.llm import Finished


async def extract(run: JobRun, action: ExtractFacts) -> Sequence[Draft]:
    """Ask for the facts; the record that says what was paid holds them, so that nobody asks again."""
    job = run.writer.job
    assert job.life.submitted is not None and job.life.submitted.user_id is not None
    reading = run.services.user_words.read(job.tenant, job.life.submitted.user_id, action.extraction)
    try:
        conversation = await run.held.listening(reading)
    except Cancelled:
        return ()
    if not conversation.words:
        return (draft(e.MemoryExtracted, reason=extraction.NOTHING_SAID),)

    def answered(finished: Finished) -> Sequence[Draft]:
        return (draft(e.MemoryExtracted, **extraction.extracted(conversation, finished.message.text)),)

    request = extraction.question(action.card, conversation.words, attempt_id=next_aux_id(job))
    call = AuxiliaryCall("memory", request, extraction.SECONDS_MAX)
    ended = await ask_aside(run, call, answered)
    return (not_made(run.writer.job, call, ended),) if isinstance(ended, NotMade) else ended


async def save(run: JobRun, action: SaveFacts) -> Sequence[Draft]:
    """Offer the facts to the memory. Raises Retry where it does not answer: the job is handed back, and tries again."""
    # They are paid for, and a kill while the memory judges them must not lose them.
    await run.writer.append(Failpoint.EXECUTOR_RESULT_BEFORE, Failpoint.EXECUTOR_RESULT_AFTER)
    request = extraction.save_request(run.writer.job, action.extracted)
    try:
        saved = await run.services.memories.save(request)
    except Reject as error:
        return (draft(e.MemorySaved, reason=str(error)),)
    reach(Failpoint.EXECUTOR_MEMORY_AFTER)
    return (draft(e.MemorySaved, outcomes=saved.outcomes),)
