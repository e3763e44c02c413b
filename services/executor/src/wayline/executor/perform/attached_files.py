"""The images and files that one call of a model sends: in memory for as long as the call lasts."""

from __future__ import annotations

from wayline.chassis.handling.worker import pause_s
from wayline.contracts.errors import Reject, Retry
from wayline.contracts.jobs import Failure
from wayline.executor.decide.actions import Fail
from wayline.executor.perform.job_run import JobRun
from wayline.journal import Job
from wayline.llm import File, media
from wayline.llm.prices import LOCAL


async def load_attachments(run: JobRun) -> dict[str, File] | Fail:
    """Load what the job names, by document id, once there is room for it; room is given back after the action.

    Raises Cancelled.
    """
    job, attachments = run.writer.job, run.services.attachments
    if not _sends_files(job):
        return {}
    turn = run.step.enter_context(attachments.room(job.conversation.attachments, beside_bytes=returned_bytes(job)))
    try:
        if not turn.is_set():
            await run.held.listening(turn.wait())
        user_id = job.life.submitted.user_id if job.life.submitted else None
        loading = attachments.of(
            job.tenant, job.conversation.attachments, user_id=user_id, again=run.attachments_loaded
        )
        found = await run.held.listening(loading)
    except Retry as error:
        # Each time is a record or two: less and less often.
        raise Retry(str(error), after_s=max(error.after_s, pause_s(run.held.ticket.delivery))) from None
    except Reject as error:
        return Fail(Failure(code=error.code, message=str(error)))
    run.attachments_loaded = True
    return found


def _sends_files(job: Job) -> bool:
    return job.routing.card.provider not in LOCAL and (bool(job.conversation.attachments) or returned_bytes(job) > 0)


def returned_bytes(job: Job) -> int:
    """Count the bytes that its next call sends of images that tools returned, before they are encoded."""
    card = job.routing.card
    if not card.images:
        return 0
    attachments = {one.document_id: one for one in job.conversation.attachments}
    sent = media.returned(card, job.conversation.prompted, attachments).values()
    return sum(image.size_bytes for images in sent for image in images)
