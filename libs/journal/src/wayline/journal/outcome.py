"""The end of a job, as it is published to the job's reply subject."""

from __future__ import annotations

import structlog
from nats import errors as nats_errors

from wayline.chassis import Bus
from wayline.contracts.jobs import JobResult, may_reply_to
from wayline.journal.state import Job
from wayline.journal.view import view

log = structlog.get_logger()


async def send_result(bus: Bus, job: Job) -> None:
    """Send the finished job to its reply subject, if it named one; a repeat after a crash is allowed.

    A reply that no bus would take is dropped: what follows the end of a job does not depend on it.
    """
    if job.life.reply_to is None or not may_reply_to(job.tenant, job.life.reply_to):
        return
    result = JobResult(tenant=job.tenant, job_id=job.job_id, job=view(job))
    try:
        await bus.send(result, subject=bus.inbox_of(job.tenant, job.life.reply_to))
    except (nats_errors.BadSubjectError, nats_errors.MaxPayloadError, ValueError) as error:
        log.warning("reply not sent", job=job.job_id, subject=job.life.reply_to, error=repr(error))
