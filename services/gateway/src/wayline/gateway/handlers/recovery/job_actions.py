"""One action on many jobs: cancel, raise, fork or tag all that meet a filter."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from typing import Annotated, Final, TypeAlias

from fastapi import APIRouter, Path, Response

from wayline.contracts import ids
from wayline.contracts.errors import NotFound
from wayline.gateway.adapters.job_actions import Held
from wayline.gateway.errors import KeyReused
from wayline.gateway.handlers.jobs.jobs import IdempotencyKey
from wayline.gateway.handlers.recovery.perform_actions import do_page
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, Reader, Writer, acting_as
from wayline.gateway.handlers.shared.own_jobs import is_own
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails
from wayline.gateway.paging import PageCursor, PageLimit, after_moment, first_page, moment_key
from wayline.gateway.shapes.job_actions import ActionBody, ActionPage, ActionProgress, RefusedJob
from wayline.gateway.strict_json import StrictRoute
from wayline.store import Record

router = APIRouter(prefix="/v1/jobs/actions", tags=["jobs"], route_class=StrictRoute)

LOOKED_AT_MAX: Final = 1_000
"""Jobs that a dry run looks at."""
ActionPath: TypeAlias = Annotated[str, Path(pattern=r"^action_[0-9a-f]{20}$", examples=["action_3f9c2b7a5d1e4f608a7c"])]


@router.post(
    "",
    status_code=202,
    responses={200: {"model": ActionProgress, "description": "What a dry run found"}, **fails(409, 413)},
)
async def begin_action(
    body: ActionBody,
    gateway: GatewayDependency,
    caller: Writer,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> ActionProgress:
    """Do one thing to many jobs. 202: it is stored, and goes on through restarts until it is done.

    `cancel`, `raise` and `fork` do to each job what the request for one job does, with the rights and rates of this
    key and no longer than it holds; `tag` adds and takes away labels. Jobs that are accepted later are not meant. The
    same `Idempotency-Key` is the same action.
    """
    if body.filter is not None:
        acting_as(caller, body.filter.user_id)
    if body.dry_run:
        response.status_code = 200
        return await _look(gateway, caller, body)
    action_id = _id_of(caller, idempotency_key)
    if not await gateway.job_actions.begin(caller, action_id, body):
        known = await _read(gateway, caller, action_id)
        if known.asked != body.model_dump(mode="json", exclude_defaults=True):
            raise KeyReused(job_id=action_id)
    response.headers["Location"] = f"/v1/jobs/actions/{action_id}"
    gateway.acting.now()
    return await _read(gateway, caller, action_id)


@router.get("", responses=fails(400))
async def list_actions(
    gateway: GatewayDependency, caller: Reader, limit: PageLimit = 50, cursor: PageCursor = None
) -> ActionPage:
    """Page through the actions of the last 30 days, the newest first; a key of one user sees its own."""
    after = after_moment(cursor)
    rows = await gateway.job_actions.listed(caller.tenant, user_id=caller.user_id, limit=limit + 1, after=after)
    page = first_page(rows, limit=limit, key=lambda row: moment_key(row["begun_at"], row["action_id"]))
    return ActionPage(actions=tuple(map(_shown, page.items)), next_cursor=page.next_cursor)


@router.get("/{action_id}", responses=fails(404))
async def get_action(action_id: ActionPath, gateway: GatewayDependency, caller: Reader) -> ActionProgress:
    """Return how far an action is: how many jobs it was done to, and which were refused."""
    return await _read(gateway, caller, action_id)


@router.post("/{action_id}/stop", responses=fails(404))
async def stop_action(action_id: ActionPath, gateway: GatewayDependency, caller: Writer) -> ActionProgress:
    """Do an action to no further job. What it was done to stays as it is."""
    await _read(gateway, caller, action_id)
    await gateway.job_actions.stop(caller.tenant, action_id)
    return await _read(gateway, caller, action_id)


async def _look(gateway: Gateway, caller: Caller, body: ActionBody) -> ActionProgress:
    """Return what would become of the first jobs."""
    held = Held(
        tenant=caller.tenant,
        action_id="",
        body=body.model_copy(update={"limit": min(body.limit, LOOKED_AT_MAX)}),
        caller=caller,
        begun_at=datetime.now(UTC),
        holder="",
        cursor=None,
        handled=[],
        counts={},
    )
    while not await do_page(gateway, held, dry_run=True):
        pass
    return ActionProgress(
        action=body.action,
        dry_run=True,
        state="done",
        counts=held.counts,
        refused=tuple(RefusedJob.model_validate(one) for one in held.refused),
        more=held.cursor is not None,
    )


async def _read(gateway: Gateway, caller: Caller, action_id: str) -> ActionProgress:
    row = await gateway.job_actions.get(caller.tenant, action_id)
    if row is None or not is_own(caller, row["user_id"]):
        raise NotFound("action", action_id)
    return _shown(row)


def _shown(row: Record) -> ActionProgress:
    values = {name: value for name, value in dict(row).items() if name != "user_id"}
    return ActionProgress.model_validate({**values, "action": row["asked"]["action"]})


def _id_of(caller: Caller, key: str | None) -> str:
    """Return the id of a new action, the same for the same key of a tenant and user."""
    if key is None:
        return f"action_{ids.new_id('').removeprefix('_')}"
    whose = f"{caller.tenant}/{caller.user_id or ''}/{key}"
    return f"action_{sha256(whose.encode()).hexdigest()[:20]}"
