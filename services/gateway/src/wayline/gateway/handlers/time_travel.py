"""A past job as a file."""

from __future__ import annotations

from fastapi import APIRouter

from wayline.contracts.errors import Conflict
from wayline.gateway.handlers.dependencies import GatewayDependency, Reader
from wayline.gateway.handlers.read_job import find_log
from wayline.gateway.openapi import fails
from wayline.gateway.parameters import JobPath
from wayline.gateway.shapes import ExportedJob
from wayline.gateway.strict_json import StrictRoute
from wayline.journal import JobLog, export_job

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=StrictRoute)


@router.get("/{job_id}/export", responses=fails(404, 409))
async def get_export(job_id: JobPath, gateway: GatewayDependency, caller: Reader) -> ExportedJob:
    """Return a job as one self-contained file: its log so far, its agent and the cards of the models it called.

    `wayline jobs replay` and `wayline test` read it.
    """
    head = await find_log(gateway, caller.tenant, job_id)
    if head is None:
        raise Conflict(f"job {job_id!r} is queued and has no log yet: export it once it runs", code="no_log_yet")
    values = [value async for value in JobLog(gateway.bus, caller.tenant, job_id).values(head.sequence)]
    return ExportedJob.model_validate(export_job(values))
