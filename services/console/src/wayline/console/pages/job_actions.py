"""One action on many jobs: a dry run says what it would do, and only then it is done."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Annotated, Any, Final, TypeAlias

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, Response

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, Visitor, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages import job_search
from wayline.console.pages.confirm import is_confirmed
from wayline.console.pages.frame import Frame, go, show
from wayline.console.pages.refusal import reason_of
from wayline.console.render.formats import utc_now
from wayline.console.render.json_text import parsed

router = APIRouter(prefix="/jobs/actions")
TEMPLATE = "job_actions.html"
ACTIONS: Final = (
    ("cancel", "Cancel"),
    ("raise", "Let each spend up to"),
    ("fork", "Begin again from where they failed"),
    ("tag", "Add tags"),
    ("untag", "Take tags away"),
)
FILTERED_MAX: Final = 100_000
"""Jobs of one action on all that match."""
NOT_A_FILTER: Final = frozenset({"sort"})
ActionId: TypeAlias = Annotated[str, Path(pattern=r"^action_[0-9a-f]{20}$")]


class NothingChosen(ValueError):
    """A form that chooses no job."""


@dataclass(frozen=True, slots=True)
class Actions:
    """What the page shows: one action, or those of the last 30 days."""

    actions: list[dict[str, Any]]
    tried: dict[str, Any] | None = None
    """What a dry run found."""
    body: str = ""
    """What was tried, to be done as it is."""
    back: str = "/jobs"
    problem: str = ""


def body_of(form: Any, *, zone: tzinfo = UTC) -> dict[str, Any]:
    """Return the action that a form asks for. Raises NothingChosen."""
    action = field_of(form, "action")
    value = field_of(form, "value")
    body: dict[str, Any] = {"action": "tag" if action == "untag" else action}
    body |= {
        "cancel": {"reason": value},
        "raise": {"budget_usd": value.lstrip("$")},
        "fork": {"model": value} if value else {},
        "tag": {"add_tags": value.split()},
        "untag": {"remove_tags": value.split()},
    }.get(action, {})
    if field_of(form, "of") == "all":
        search = job_search.parse(field_of(form, "s"), now=utc_now(), zone=zone)
        if search.problems:
            raise NothingChosen(search.problems[0])
        conditions = {name: given for name, given in search.parameters.items() if name not in NOT_A_FILTER}
        return body | {"filter": conditions, "limit": FILTERED_MAX}
    chosen = [job_id for job_id in form.getlist("job") if isinstance(job_id, str)]
    if not chosen:
        raise NothingChosen("choose jobs by the boxes before them, or all that match")
    return body | {"job_ids": chosen}


async def read(client: Client) -> Actions:
    """Ask the API for the actions of the last 30 days."""
    return Actions((await client.get("/v1/jobs/actions"))["actions"])


def _frame(request: Request, visitor: Visitor) -> Frame:
    return Frame.of(request, visitor, title="Actions on jobs", section="/jobs")


@router.get("")
async def actions(request: Request, visitor: VisitorDependency) -> HTMLResponse:
    """Show the actions of the last 30 days."""
    return await show(request, TEMPLATE, _frame(request, visitor), page=await read(visitor.client))


@router.get("/{action_id}")
async def action(request: Request, visitor: VisitorDependency, action_id: ActionId) -> HTMLResponse:
    """Show how far an action is."""
    found = await visitor.client.get(f"/v1/jobs/actions/{action_id}")
    return await show(request, TEMPLATE, _frame(request, visitor), page=Actions([found]))


@router.post("/{action_id}/stop")
async def stop(request: Request, visitor: VisitorDependency, form: PostedForm, action_id: ActionId) -> Response:
    """Do an action to no further job."""
    await visitor.client.post(f"/v1/jobs/actions/{action_id}/stop")
    return go(f"/jobs/actions/{action_id}")


@router.post("")
async def act(request: Request, visitor: VisitorDependency, form: PostedForm) -> Response:
    """Say what an action would do, or do what was tried."""
    back = job_search.address(field_of(form, "s"))
    try:
        if is_confirmed(form):
            begun = await visitor.client.post("/v1/jobs/actions", parsed(field_of(form, "body")))
            return go(f"/jobs/actions/{begun['action_id']}")
        body = body_of(form, zone=request.app.state.templates.zone)
        tried = await visitor.client.post("/v1/jobs/actions", body | {"dry_run": True})
        page = Actions([], tried, json.dumps(body), back)
    except (ValueError, ApiError) as error:
        problem = reason_of(error) if isinstance(error, ApiError) else str(error)
        page = Actions([], back=back, problem=problem)
    return await show(request, TEMPLATE, _frame(request, visitor), status=422 if page.problem else 200, page=page)
