"""One action on many jobs, done job by job: repeated after a kill, it does nothing twice to any of them."""

from __future__ import annotations

from functools import partial
from hashlib import sha256

from wayline.chassis import Failpoint, reach
from wayline.contracts.errors import NotFound, Reject, Retry
from wayline.contracts.job_tags import TaggedJobs, TagJobs
from wayline.contracts.jobs import Fork, JobView
from wayline.contracts.traces import ListJobs
from wayline.gateway.adapters.job_actions import HELD_S, Held
from wayline.gateway.handlers.jobs.budget_limits import require_allowed
from wayline.gateway.handlers.jobs.jobs import cancel_job, change_budget
from wayline.gateway.handlers.recovery.time_travel import forked, read_values
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.handlers.shared.find_jobs import find_jobs
from wayline.gateway.handlers.shared.submit_job import submit
from wayline.gateway.keys import Caller
from wayline.gateway.shapes.job_actions import Outcome
from wayline.gateway.shapes.jobs import BudgetBody, CancelBody
from wayline.gateway.shapes.time_travel import ForkBody
from wayline.journal import JobLog, State

PAGE = 20
"""Jobs between two notes of how far an action is."""


async def go_on(gateway: Gateway) -> bool:
    """Do the next page of the action that has waited longest; False: there is none."""
    held = await gateway.job_actions.take()
    if held is None:
        return False
    move = partial(gateway.job_actions.move, held)
    try:
        held.caller = await _caller(gateway, held)
        ended = await do_page(gateway, held)
    except Retry as error:
        await move("running", waits_for=str(error), after_s=error.after_s)
    except Reject as error:
        # Of one job it would be that job's: this holds for all that are left.
        await move("stopped", waits_for=str(error))
    except Exception:
        await move("running", waits_for="an error of the gateway, which has written it down", after_s=HELD_S)
        raise
    else:
        reach(Failpoint.GATEWAY_ACTION_BEFORE)
        await move("done" if ended else "running")
    return True


async def _caller(gateway: Gateway, held: Held) -> Caller:
    """Return the caller of an action, as its key is now. Raises Reject for one that does not hold any more."""
    if not held.caller.key_id:
        return held.caller
    caller = await gateway.keys.of(held.caller.key_id)
    if caller is None or caller.tenant != held.tenant:
        raise Reject("its API key was revoked, or has expired")
    return caller


async def do_page(gateway: Gateway, held: Held, *, dry_run: bool = False) -> bool:
    """Do the action to the jobs of one page; returns whether that was the last. Raises Retry, with its place noted."""
    jobs, unknown, cursor = await _page(gateway, held)
    for job_id in unknown:
        held.note(job_id, "refused", str(NotFound("job", job_id)))
    if held.body.action == "tag" and not dry_run:
        await _tag(gateway, held, jobs)
    else:
        for job in jobs:
            held.note(job.job_id, *await _done(gateway, held, job, dry_run=dry_run))
    held.cursor, held.handled = cursor, []
    return cursor is None or held.left <= 0


async def _page(gateway: Gateway, held: Held) -> tuple[list[JobView], list[str], str | None]:
    """Return the jobs that come next, the named ones that are not there, and where the page after them begins."""
    body, size = held.body, min(PAGE, held.left + len(held.handled))
    if body.job_ids is not None:
        at = int(held.cursor or 0)
        named = tuple(dict.fromkeys(body.job_ids))[at : at + size]
        asked = ListJobs(tenant=held.tenant, limit=size, job_ids=named, user_id=held.caller.user_id)
        after = str(at + size) if at + size < len(set(body.job_ids)) else None
    else:
        assert body.filter is not None
        user_id = held.caller.user_id or body.filter.user_id
        asked = body.filter.asked(held.tenant, user_id=user_id)
        until = min(asked.until or held.begun_at, held.begun_at)
        asked = asked.model_copy(update={"limit": size, "cursor": held.cursor, "until": until})
        named, after = (), None
    page = await find_jobs(gateway, asked)
    found = {job.job_id for job in page.jobs}
    jobs = [job for job in page.jobs if job.job_id not in held.handled]
    unknown = [job_id for job_id in named if job_id not in found and job_id not in held.handled]
    return jobs, unknown, after if body.job_ids is not None else page.next_cursor


async def _done(gateway: Gateway, held: Held, job: JobView, *, dry_run: bool) -> tuple[Outcome, str]:
    """Do the action to one job, and return what became of it. Raises Retry where it must be tried again."""
    try:
        if held.body.action == "cancel":
            return await _cancel(gateway, held, job.job_id, dry_run=dry_run), ""
        if held.body.action == "raise":
            return await _raise(gateway, held, job.job_id, dry_run=dry_run), ""
        if held.body.action == "fork":
            return await _fork(gateway, held, job.job_id, dry_run=dry_run), ""
        return "done", ""
    except Reject as error:
        return "refused", str(error)


async def _cancel(gateway: Gateway, held: Held, job_id: str, *, dry_run: bool) -> Outcome:
    head = await JobLog(gateway.bus, held.tenant, job_id).last()
    if head is not None and head.state is State.ENDED:
        return "already"
    if not dry_run:
        await cancel_job(job_id, gateway, held.caller, CancelBody(reason=held.body.reason))
    return "done"


async def _raise(gateway: Gateway, held: Held, job_id: str, *, dry_run: bool) -> Outcome:
    assert held.body.budget_usd is not None
    if dry_run:
        head = await JobLog(gateway.bus, held.tenant, job_id).last()
        await require_allowed(gateway, held.caller, job_id, head, held.body.budget_usd)
        return "already" if head is not None and head.state is State.ENDED else "done"
    await change_budget(job_id, BudgetBody(budget_usd=held.body.budget_usd), gateway, held.caller)
    return "done"


async def _fork(gateway: Gateway, held: Held, job_id: str, *, dry_run: bool) -> Outcome:
    """Begin a fork whose id follows from the action and the job: it is begun once."""
    wanted = fork_id(held.tenant, held.action_id, job_id)
    if await JobLog(gateway.bus, held.tenant, wanted).last() is not None:
        return "done"
    values = await read_values(gateway, held.tenant, job_id)
    body = ForkBody(job_id=wanted, model=held.body.model, budget_usd=held.body.budget_usd)
    job = forked(values, Fork(job_id=job_id), tenant=held.tenant, body=body)
    if not dry_run:
        await submit(gateway, job, own_id=True, key=None, caller=None, by=held.caller)
    return "done"


async def _tag(gateway: Gateway, held: Held, jobs: list[JobView]) -> None:
    """Label the jobs of a page at once."""
    wanted = [job.job_id for job in jobs]
    if not wanted:
        return
    asked = TagJobs(tenant=held.tenant, job_ids=tuple(wanted), add=held.body.add_tags, remove=held.body.remove_tags)
    tagged = set((await gateway.bus.ask(asked, TaggedJobs)).job_ids)
    for job_id in wanted:
        if job_id in tagged:
            held.note(job_id, "done")
        else:
            held.note(job_id, "refused", "it would have more tags than it may")


def fork_id(tenant: str, action_id: str, job_id: str) -> str:
    """Return the id of the fork that an action begins of a job."""
    return f"fork_{sha256(f'{tenant}/{action_id}/{job_id}'.encode()).hexdigest()[:40]}"
