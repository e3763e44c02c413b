"""Forgetting: a user, a subject or one job, with a receipt."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Path, Response

from wayline.contracts.forgetting import Forget, Forgetting, GetForgetting
from wayline.gateway.errors import Forbidden
from wayline.gateway.handlers.shared.auditing import note_change
from wayline.gateway.handlers.shared.dependencies import GatewayDependency, Reader, Writer, acting_as
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails
from wayline.gateway.parameters import JobPath
from wayline.gateway.shapes.forgetting import ForgetBody
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1", tags=["forgetting"], route_class=StrictRoute)

ForgetPath: TypeAlias = Annotated[
    str, Path(pattern=r"^forget_[A-Za-z0-9_-]{1,64}$", examples=["forget_3f9c2b7a5d1e4f608a7c"])
]


@router.post("/forget", status_code=202, responses=fails(404, 409, 429))
async def forget(body: ForgetBody, gateway: GatewayDependency, caller: Writer, response: Response) -> Forgetting:
    """Forget a user or a subject. 202: it is stored, and goes on until the receipt is whole.

    While the same is being forgotten, the answer is that request. It needs the scope `admin`, or a key of that user.
    """
    user_id = acting_as(caller, body.user_id) if body.subject is None else None
    require_own_or_admin(caller, user_id)
    asked = Forget(tenant=caller.tenant, user_id=user_id, subject_ref=body.subject, asked_by=caller.name)
    begun = await gateway.bus.ask(asked, Forgetting)
    # Not who is forgotten: what is written here is kept longer than they are.
    note_change(name=begun.forget_id)
    return _located(begun, response)


@router.get("/forget/{forget_id}", responses=fails(404))
async def get_forgetting(forget_id: ForgetPath, gateway: GatewayDependency, caller: Reader) -> Forgetting:
    """Return how far a request to forget is, and its receipt. A key of one user sees that user's alone."""
    asked = GetForgetting(tenant=caller.tenant, forget_id=forget_id, of_user=caller.user_id)
    return await gateway.bus.ask(asked, Forgetting)


@router.delete("/jobs/{job_id}", status_code=202, responses=fails(404, 409, 429))
async def delete_job(job_id: JobPath, gateway: GatewayDependency, caller: Writer, response: Response) -> Forgetting:
    """Delete an ended job with those that it started: its log, its traces, all that is of it. 202: it is stored.

    Its cost stays in the ledger. It needs the scope `admin`, or a key of the job's user.
    """
    require_own_or_admin(caller, caller.user_id)
    asked = Forget(tenant=caller.tenant, job_id=job_id, of_user=caller.user_id, asked_by=caller.name)
    return _located(await gateway.bus.ask(asked, Forgetting), response)


def require_own_or_admin(caller: Caller, user_id: str | None) -> None:
    """Pass for a key of this user, and for an administrator. Raises Forbidden."""
    if (caller.user_id is None or caller.user_id != user_id) and "admin" not in caller.scopes:
        raise Forbidden("forgetting needs the scope 'admin', or a key of the user who is forgotten")


def _located(forgetting: Forgetting, response: Response) -> Forgetting:
    response.headers["Location"] = f"/v1/forget/{forgetting.forget_id}"
    return forgetting
