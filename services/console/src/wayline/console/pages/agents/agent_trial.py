"""Try an agent on one input, also beside a version with a label or another agent, and see what both took."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages.agents.agent_page import VIEWS, AgentName, frame_of
from wayline.console.pages.form_values import key_of, new_key
from wayline.console.pages.frame import go, show, show_region
from wayline.console.pages.refusal import reason_of

router = APIRouter(prefix="/agents/{name}/try")
TEMPLATE = "agents/trial.html"
ENDED = frozenset({"completed", "failed", "cancelled"})
LABEL: Final = "label:"
"""What stands before a label where agents can be chosen, too: none of these has a colon."""
JobId = Annotated[str | None, Query(pattern=r"^[A-Za-z0-9_.:=+@-]{1,128}$")]


@dataclass(frozen=True, slots=True)
class Trial:
    """What the page shows."""

    name: str
    version: int | None
    others: list[tuple[str, str]]
    """What it can be compared with, and the title of each: versions with a label, other agents."""
    jobs: list[dict[str, Any]]
    input: str = ""
    beside: str = ""
    problem: str = ""
    key: str = field(default_factory=new_key)
    """Of its jobs: a form that is sent twice begins them once."""
    views: Any = VIEWS
    view: str = "/try"

    @property
    def is_running(self) -> bool:
        return any(job["status"] not in ENDED for job in self.jobs)

    @property
    def ids(self) -> list[str]:
        return [job["job_id"] for job in self.jobs]


async def read(client: Client, name: str, job_ids: list[str]) -> Trial:
    """Ask the API for the agent, the others, and the jobs of a trial."""
    found, agents, *jobs = await asyncio.gather(
        client.get(f"/v1/agents/{name}"),
        client.whole("/v1/agents", "agents"),
        *(client.job(job_id) for job_id in job_ids),
    )
    labels = [(f"{LABEL}{one['label']}", f"version {one['version']}, {one['label']}") for one in found["labels"]]
    others = [(agent["name"], agent["name"]) for agent in agents["agents"] if agent["name"] != name]
    return Trial(name, found["version"], labels + others, list(jobs))


def submission(name: str, beside: str, said: str) -> dict[str, Any]:
    """Return the job of what an agent is compared with: another agent, or a version of its own with a label."""
    if beside.startswith(LABEL):
        return {"agent": name, "input": said, "options": {"agent_label": beside.removeprefix(LABEL)}}
    return {"agent": beside, "input": said}


@router.get("")
async def trial(
    request: Request, visitor: VisitorDependency, name: AgentName, first: JobId = None, second: JobId = None
) -> HTMLResponse:
    """Show the form that tries an agent, and what became of a trial."""
    page = await read(visitor.client, name, [one for one in (first, second) if one])
    return await show(request, TEMPLATE, frame_of(request, visitor, name), page=page)


@router.get("/region")
async def region(
    request: Request, visitor: VisitorDependency, name: AgentName, first: JobId = None, second: JobId = None
) -> HTMLResponse:
    """Show what became of a trial so far."""
    page = await read(visitor.client, name, [one for one in (first, second) if one])
    return await show_region(request, TEMPLATE, "answers", frame_of(request, visitor, name), page=page)


@router.post("")
async def begin(request: Request, visitor: VisitorDependency, form: PostedForm, name: AgentName) -> Response:
    """Submit one input to the agent, and to a second one where one is named."""
    said, beside = field_of(form, "input"), field_of(form, "beside")
    try:
        wanted = [{"agent": name, "input": said}, *([submission(name, beside, said)] if beside else [])]
        # Nothing is begun, and paid for, where the other cannot be.
        planned = ({**job, "options": {**job.get("options", {}), "dry_run": True}} for job in wanted)
        await asyncio.gather(*(visitor.client.post("/v1/jobs", job) for job in planned))
        key = key_of(form)
        keys = (key and f"{key}-{number}" for number in range(len(wanted)))
        begun = [await visitor.client.submit(job, key=one) for job, one in zip(wanted, keys, strict=True)]
    except ApiError as error:
        problem = reason_of(error)
        page = replace(await read(visitor.client, name, []), input=said, beside=beside, problem=problem)
        return await show(request, TEMPLATE, frame_of(request, visitor, name), status=422, page=page)
    named = zip(("first", "second"), begun, strict=False)
    query = "&".join(f"{which}={accepted['job_id']}" for which, accepted in named)
    return go(f"/agents/{name}/try?{query}")
