"""What a key of one user may know of: that user's jobs and sessions, and nobody else's."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import Depends

from wayline.contracts.errors import NotFound, Refused
from wayline.contracts.events import JobSubmitted
from wayline.contracts.sessions import GetSession, SessionTurns
from wayline.gateway.errors import Forbidden
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, identify
from wayline.gateway.handlers.shared.read_job import find_log
from wayline.gateway.keys import Caller
from wayline.gateway.parameters import JobPath
from wayline.journal import JobLog


def is_own(caller: Caller, user_id: str | None) -> bool:
    """Return whether a caller may know of what is of a user; None: of nobody."""
    return caller.user_id in (None, user_id)


async def require_own_job(gateway: Gateway, caller: Caller, job_id: str) -> None:
    """Pass for a job that the caller may know of. Raises NotFound, as for a job that does not exist."""
    if caller.user_id is not None and await _user_of(gateway, caller.tenant, job_id) != caller.user_id:
        raise NotFound("job", job_id)


async def require_own_session(gateway: Gateway, caller: Caller, session_id: str | None) -> None:
    """Pass for a session that the caller may add to, also a new one. Raises Forbidden for another user's."""
    if caller.user_id is None or session_id is None:
        return
    try:
        asked = GetSession(tenant=caller.tenant, session_id=session_id, limit=1)
        session = await gateway.bus.ask(asked, SessionTurns)
    except (NotFound, Refused) as error:
        if error.status != NotFound.status:
            raise
        return
    if not is_own(caller, session.user_id):
        raise Forbidden(f"this API key acts for user {caller.user_id!r}, and the session is not theirs")


def require_all_users(caller: Caller, what: str) -> None:
    """Pass where the key is of no single user. Raises Forbidden."""
    if caller.user_id is not None:
        raise Forbidden(f"this API key acts for user {caller.user_id!r}, and {what} of all users")


async def own_job(job_id: JobPath, gateway: GatewayDependency, caller: Annotated[Caller, Depends(identify)]) -> str:
    """Return the id of a job in a path. Raises NotFound where the caller may not know of it."""
    await require_own_job(gateway, caller, job_id)
    return job_id


OwnJobPath: TypeAlias = Annotated[str, Depends(own_job)]


async def _user_of(gateway: Gateway, tenant: str, job_id: str) -> str | None:
    if await find_log(gateway, tenant, job_id) is None:
        queued = await gateway.submissions.queued(tenant, job_id)
        return None if queued is None else queued.user_id
    first = await JobLog(gateway.bus, tenant, job_id).first()
    return next(event.job.user_id for event in first if isinstance(event, JobSubmitted))
