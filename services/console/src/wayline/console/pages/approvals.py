"""Approvals: every decision that a job waits for, with the exact arguments."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, VisitorDependency, field
from wayline.console.pages.frame import Frame, go, own_address, show

router = APIRouter()
TEMPLATE = "approvals.html"
PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Approvals:
    """What waits for a person."""

    waits: list[dict[str, Any]]
    next_cursor: str | None
    problem: str = ""


async def read(client: Client, cursor: str | None = None, *, problem: str = "") -> Approvals:
    """Ask the API for what waits."""
    page = await client.approvals(limit=PAGE_SIZE, cursor=cursor)
    return Approvals(page["approvals"], page["next_cursor"], problem)


@router.get("/approvals")
async def approvals(
    request: Request, visitor: VisitorDependency, cursor: Annotated[str | None, Query()] = None
) -> HTMLResponse:
    """Show what waits for a person."""
    frame = Frame.of(request, visitor, title="Approvals", section="/approvals")
    return await show(request, TEMPLATE, frame, page=await read(visitor.client, cursor))


class NotAnObject(ValueError):
    """Arguments that were edited are no JSON object."""


def decision_of(*, decision: str, arguments: str, shown: str, reason: str, call_hash: str = "") -> dict[str, Any]:
    """Return the decision that a form makes, bound to the call that was shown.

    Arguments are sent only where they were changed. Raises NotAnObject.
    """
    bound = {"hash": call_hash} if call_hash else {}
    if decision == "deny":
        return {"decision": "deny", "reason": reason, **bound}
    changed: Any = None
    try:
        if arguments and json.loads(arguments) != json.loads(shown or "null"):
            changed = json.loads(arguments)
    except ValueError as error:
        raise NotAnObject(f"the arguments are not JSON: {error}") from None
    if changed is not None and not isinstance(changed, dict):
        raise NotAnObject("the arguments are not a JSON object")
    return {"decision": "approve", **bound} | ({} if changed is None else {"arguments": changed})


@router.post("/approvals/{job_id}/{approval_id}")
async def decide(
    request: Request, visitor: VisitorDependency, form: PostedForm, job_id: str, approval_id: str
) -> Response:
    """Approve or deny a call that waits."""
    try:
        decision = decision_of(
            decision="approve" if field(form, "decision") == "approve" else "deny",
            arguments=field(form, "arguments"),
            shown=field(form, "shown"),
            reason=field(form, "reason"),
            call_hash=field(form, "hash"),
        )
        await visitor.client.decide(quote(job_id, safe=""), quote(approval_id, safe=""), decision)
    except (NotAnObject, ApiError) as error:
        if isinstance(error, ApiError) and (error.status is None or error.status >= 500):
            raise
        frame = Frame.of(request, visitor, title="Approvals", section="/approvals")
        page = await read(visitor.client, problem=f"{job_id}: {error}")
        return await show(request, TEMPLATE, frame, status=422, page=page)
    return go(own_address(field(form, "then") or "/approvals"), done="decided")
