"""Feedback: what people and programs think of a job."""

from __future__ import annotations

from fastapi import APIRouter

from wayline.contracts.errors import NotFound, Refused, Unavailable
from wayline.contracts.feedback import Feedback, FeedbackList, GiveFeedback, ListFeedback
from wayline.gateway.handlers.shared.dependencies import GatewayDependency, Reader, Writer, acting_as
from wayline.gateway.handlers.shared.own_jobs import OwnJobPath
from wayline.gateway.handlers.shared.read_job import find_log
from wayline.gateway.openapi import fails
from wayline.gateway.shapes.feedback import FeedbackBody
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=StrictRoute)


@router.post("/{job_id}/feedback", responses=fails(404, 409))
async def give_feedback(job_id: OwnJobPath, body: FeedbackBody, gateway: GatewayDependency, caller: Writer) -> Feedback:
    """Judge a job. The same `by` judges each `key` once: again, it replaces what it said before.

    A key of one user judges in that user's name, and only that user's jobs.
    """
    said = body.model_dump(exclude={"by"})
    by = acting_as(caller, body.by) or caller.name
    try:
        return await gateway.bus.ask(GiveFeedback(**said, tenant=caller.tenant, job_id=job_id, by=by), Feedback)
    except (NotFound, Refused) as error:
        if error.status != NotFound.status:
            raise
        # NotFound where there is no such job; else it was accepted a moment ago.
        await find_log(gateway, caller.tenant, job_id)
        raise Unavailable("tracing", detail=f"it does not know job {job_id!r} yet") from None


@router.get("/{job_id}/feedback", responses=fails(404))
async def list_feedback(job_id: OwnJobPath, gateway: GatewayDependency, caller: Reader) -> FeedbackList:
    """Return what was said of a job, the newest first; at most 100 judgements."""
    return await gateway.bus.ask(ListFeedback(tenant=caller.tenant, job_id=job_id), FeedbackList)
