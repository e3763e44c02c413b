"""Results of tools that a job's caller runs itself."""

from __future__ import annotations

from fastapi import APIRouter

from wayline.gateway.handlers.shared.dependencies import GatewayDependency, Writer
from wayline.gateway.handlers.shared.give_results import give_results
from wayline.gateway.handlers.shared.own_jobs import OwnJobPath
from wayline.gateway.openapi import fails
from wayline.gateway.shapes.jobs import ResultsBody, Signalled, links
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=StrictRoute)


@router.post("/{job_id}/tool_results", status_code=202, responses=fails(404, 409, 413, 429))
async def give_tool_results(
    job_id: OwnJobPath, body: ResultsBody, gateway: GatewayDependency, caller: Writer
) -> Signalled:
    """Give a job what tools of `options.client_tools` returned, one or several; it goes on once it has all of a step.

    202: the results are stored. The same result again changes nothing; another one of the same call is a 409, and a
    call that the job has not made a 404.
    """
    await give_results(gateway, caller, job_id, body.results)
    return Signalled(job_id=job_id, signal="tool_results", links=links(job_id))
