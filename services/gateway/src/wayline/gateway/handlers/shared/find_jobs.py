"""Lists of jobs, as tracing answers them."""

from __future__ import annotations

from wayline.contracts.errors import Unavailable
from wayline.contracts.jobs import JobView
from wayline.contracts.traces import JobPage, ListJobs
from wayline.gateway.handlers.shared.dependencies import Gateway


async def find_jobs(gateway: Gateway, asked: ListJobs) -> JobPage:
    """Return a page of the jobs that meet every condition. Raises Unavailable while a tracing does not know one."""
    page = await gateway.bus.ask(asked, JobPage)
    # One of before 0.2.0 lists every job where documents are asked for; an action would be done to all of them.
    if asked.cites is not None and not all(_cites(job, asked.cites) for job in page.jobs):
        raise Unavailable("tracing", detail="a process of it is of before 0.2.0 and does not know `cites`")
    return page


def _cites(job: JobView, document_id: str) -> bool:
    return any(passage.document_id == document_id for passage in job.citations)
