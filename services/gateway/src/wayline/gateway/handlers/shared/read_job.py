"""What a job is right now, read from its log."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import Any, Final

from wayline.contracts.errors import NotFound, Refused, Retry
from wayline.contracts.events import Event
from wayline.contracts.jobs import TERMINAL, JobView, QueuePlace, Status
from wayline.contracts.traces import FindQueuePlaces, JobPage, ListJobs, QueuePlaces
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.shapes.jobs import linked
from wayline.journal import Head, JobLog, fold, follow, progress_after, view

FOR_A_PERSON: Final = frozenset({"needs_decision", "approval", "budget"})
"""What a job may wait for that no patience brings about."""
NOTES_WITHIN_S: Final = 1.0
"""How long a job is held back for what stands beside its log."""


async def read_job(gateway: Gateway, tenant: str, job_id: str) -> JobView:
    """Return the job from its log, or from its submission while the router has not begun one. Raises NotFound."""
    events = [event async for event in JobLog(gateway.bus, tenant, job_id).read()]
    if events:
        job = view(fold(events))
        doing = progress_after(events) if job.status is Status.RUNNING else None
        return linked(job.model_copy(update={"progress": doing}))
    queued = await gateway.submissions.queued(tenant, job_id)
    if queued is None:
        raise NotFound("job", job_id)
    return linked(queued)


async def read_notes(gateway: Gateway, tenant: str, job_id: str) -> dict[str, Any]:
    """Return what no log tells of a job, because people said it beside: nothing where tracing cannot be asked."""
    try:
        asked = ListJobs(tenant=tenant, limit=1, job_ids=(job_id,))
        page = await gateway.bus.ask(asked, JobPage, timeout_s=NOTES_WITHIN_S)
    except (Retry, Refused):
        return {}
    return {"feedback": page.jobs[0].feedback, "tags": page.jobs[0].tags} if page.jobs else {}


async def read_queue_place(gateway: Gateway, tenant: str, job_id: str) -> QueuePlace | None:
    """Return where a queued job stands; None where tracing does not know it or cannot be asked."""
    try:
        asked = FindQueuePlaces(tenant=tenant, job_ids=(job_id,))
        found = await gateway.bus.ask(asked, QueuePlaces, timeout_s=NOTES_WITHIN_S)
    except (Retry, Refused):
        return None
    return found.places[0] if found.places else None


async def find_log(gateway: Gateway, tenant: str, job_id: str) -> Head | None:
    """Return the last record of a job, None while it is queued. Raises NotFound for a job that does not exist."""
    head = await JobLog(gateway.bus, tenant, job_id).last()
    if head is None and await gateway.submissions.queued(tenant, job_id) is None:
        raise NotFound("job", job_id)
    return head


async def wait_for_log(gateway: Gateway, tenant: str, job_id: str, *, wait_s: float) -> None:
    """Return once a job has a log, so that it is found, or after some time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(wait_s), aclosing(follow(gateway.bus, tenant, job_id)) as news:
            await anext(news, None)


async def wait_for_end(gateway: Gateway, tenant: str, job_id: str, *, wait_s: float) -> JobView | None:
    """Return the finished job, or None when it did not end in time."""
    events: list[Event] = []
    try:
        async with asyncio.timeout(wait_s), aclosing(follow(gateway.bus, tenant, job_id)) as news:
            async for item in news:
                if isinstance(item, Event):
                    events.append(item)
    except TimeoutError:
        return None
    return linked(view(fold(events)))


def has_ended(job: JobView) -> bool:
    """Return whether nothing more will happen to a job."""
    return job.status in TERMINAL
