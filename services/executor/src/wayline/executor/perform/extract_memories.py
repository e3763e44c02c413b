"""Has a helper model name the facts that last in what a user said, and has them judged and kept: each of it once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wayline.chassis import Failpoint, reach
from wayline.contracts import events as e
from wayline.contracts.errors import Reject
from wayline.executor.decide import extraction, worst_case
from wayline.executor.decide.actions import ExtractFacts, SaveFacts
from wayline.executor.hold.held_job import Cancelled
from wayline.executor.hold.log_writer import Draft, draft
from wayline.executor.perform.auxiliary_call import Answered, AuxiliaryCall, NotMade, ask_aside, next_aux_id, not_made
from wayline.executor.perform.job_run import JobRun, OtherAction, Outcome
from wayline.executor.perform.park_or_end import last_moment
from wayline.llm import Finished


async def extract(run: JobRun, action: ExtractFacts) -> Outcome:
    """Ask for the facts; the record that says what was paid holds them, so that nobody asks again."""
    job = run.writer.job
    assert job.life.submitted is not None and job.life.submitted.user_id is not None
    assert job.life.submitted.extract is not None
    reading = run.services.user_words.read(job.tenant, job.life.submitted.user_id, job.life.submitted.extract)
    try:
        conversation = await run.held.listening(reading)
    except Cancelled:
        return ()
    if not conversation.words:
        return (draft(e.MemoryExtracted, reason=extraction.NOTHING_SAID),)

    def answered(finished: Finished) -> Sequence[Draft]:
        return (draft(e.MemoryExtracted, **extraction.extracted(conversation, finished.message.text)),)

    request = extraction.question(action.card, conversation.words, attempt_id=next_aux_id(job))
    return await ask_for_memory(run, AuxiliaryCall("memory", request, extraction.SECONDS_MAX), answered)


async def ask_for_memory(run: JobRun, call: AuxiliaryCall, answered: Answered) -> Outcome:
    """Make the one call of a job that remembers; where a budget has no room for it now, the job waits for that."""
    seen = run.writer.signals_seen
    ended = await ask_aside(run, replace(call, waits=worst_case.would_wait(run.writer.job)), answered)
    if not isinstance(ended, NotMade):
        return ended
    if ended.waits_for is None:
        return (not_made(run.writer.job, call, ended),)
    if run.writer.signals_seen != seen:
        # What was heard meanwhile may be the room it needs: parked, nobody would tell it again.
        return ()
    waiting = worst_case.wait_for_room(run.writer.job, ended.waits_for, ended.why, expires_at=last_moment(run))
    return (not_made(run.writer.job, call, ended),) if waiting is None else OtherAction(waiting)


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
