"""The images and files that one call of a model sends: in memory for as long as the call lasts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from wayline.chassis.worker import pause_s
from wayline.contracts.errors import Reject, Retry
from wayline.contracts.jobs import Failure
from wayline.executor.decide.actions import Fail
from wayline.executor.hold.held_job import Cancelled, HeldJob
from wayline.executor.perform.services import RunServices
from wayline.journal import Job
from wayline.llm import File, media


def returned_bytes(job: Job) -> int:
    """Count the bytes that its next call sends of images that tools returned, before they are encoded."""
    attachments = {one.document_id: one for one in job.attachments}
    sent = media.returned(job.card, job.messages, attachments).values()
    return sum(image.size_bytes for images in sent for image in images)


@asynccontextmanager
async def load_attachments(hands: RunServices, hold: HeldJob) -> AsyncIterator[dict[str, File] | Fail | None]:
    """What the job names, by document id, once there is room for it; or why not, None: it is being cancelled."""
    job = hold.pen.job
    with hands.files.room(job.attachments, beside_bytes=returned_bytes(job)) as turn:
        try:
            if not turn.is_set():
                await hold.listening(turn.wait(), finish_when_draining=False)
            fetching = hands.files.of(job.tenant, job.attachments, again=hold.given_files)
            found = await hold.listening(fetching, finish_when_draining=False)
        except Cancelled:
            found = None
        except Retry as error:
            # Each time is a record or two: less and less often.
            raise Retry(str(error), after_s=max(error.after_s, pause_s(hold.ticket.delivery))) from None
        except Reject as error:
            found = Fail(Failure(code=error.code, message=str(error)))
        else:
            hold.given_files = True
        yield found
