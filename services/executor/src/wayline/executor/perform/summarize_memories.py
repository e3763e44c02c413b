"""Has a helper model write summaries of what is remembered of a user, and has them judged and kept: each of it once."""

from __future__ import annotations

from wayline.chassis import Failpoint, reach
from wayline.contracts import events as e
from wayline.contracts.errors import Reject
from wayline.executor.decide import memory_summary
from wayline.executor.decide.actions import KeepSummaries, SummarizeFacts
from wayline.executor.hold.held_job import Cancelled
from wayline.executor.hold.log_writer import Draft, draft
from wayline.executor.perform.auxiliary_call import AuxiliaryCall, next_aux_id
from wayline.executor.perform.extract_memories import ask_for_memory
from wayline.executor.perform.job_run import JobRun, Outcome
from wayline.llm import Finished


async def summarize(run: JobRun, action: SummarizeFacts) -> Outcome:
    """Ask for summaries; the record that says what was paid holds them, so that nobody asks again. Raises Retry."""
    job = run.writer.job
    assert job.life.submitted is not None and job.life.submitted.user_id is not None
    try:
        facts = await run.held.listening(run.services.memories.known(job.tenant, job.life.submitted.user_id))
    except Cancelled:
        return ()
    groups = memory_summary.groups_of(facts)
    if not groups:
        return (draft(e.MemorySummarized, reason=memory_summary.FEW),)

    def answered(finished: Finished) -> tuple[Draft, ...]:
        return (draft(e.MemorySummarized, **memory_summary.summarized(groups, finished.message.text)),)

    request = memory_summary.question(action.card, groups, attempt_id=next_aux_id(job))
    return await ask_for_memory(run, AuxiliaryCall("memory", request, memory_summary.SECONDS_MAX), answered)


async def keep(run: JobRun, action: KeepSummaries) -> tuple[Draft, ...]:
    """Offer the summaries to the memory. Raises Retry where it does not answer: the job is handed back."""
    # They are paid for, and a kill while the memory judges them must not lose them.
    await run.writer.append(Failpoint.EXECUTOR_RESULT_BEFORE, Failpoint.EXECUTOR_RESULT_AFTER)
    request = memory_summary.keep_request(run.writer.job, action.summarized)
    try:
        kept = await run.services.memories.summarize(request)
    except Reject as error:
        return (draft(e.MemorySaved, reason=str(error)),)
    reach(Failpoint.EXECUTOR_MEMORY_AFTER)
    return (draft(e.MemorySaved, outcomes=kept.outcomes, run_id=kept.run_id),)
