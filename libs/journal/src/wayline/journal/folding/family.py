"""Which jobs a job has started after each event, and what became of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wayline.contracts import events as e
from wayline.contracts.jobs import Child
from wayline.journal.costs import plus
from wayline.journal.state import Changes, Job


def _submitted(_: Job, event: e.JobSubmitted) -> Changes:
    return {} if event.parent is None else {"parent": event.parent}


def _answered(job: Job, _: e.ModelCompleted) -> Changes:
    return {"overdue": False} if job.family.overdue else {}


def _started(job: Job, event: e.ChildStarted) -> Changes:
    child = Child(job_id=event.child_id, agent=event.agent, step=event.step, call=event.call)
    return {"children": (*job.family.children, child)}


def _completed(job: Job, event: e.ToolCompleted) -> Changes:
    end = event.child
    if end is None:
        return {}
    known = {"status": end.status, "cost_usd": end.cost_usd}
    children = tuple(
        child.model_copy(update=known) if child.job_id == end.job_id else child
        for child in (*job.family.children, *_unnoted(job, event, end))
    )
    return {
        "children": children,
        "children_usd": plus(job.family.children_usd, end.cost_usd),
        "children_most_usd": plus(job.family.children_most_usd, end.most_usd),
    }


def _unnoted(job: Job, event: e.ToolCompleted, end: e.ChildEnd) -> tuple[Child, ...]:
    """Return a job of which only the end is in the log: its holder was killed before it could note its start."""
    if any(child.job_id == end.job_id for child in job.family.children):
        return ()
    call = next((call for call in job.tools.calls if call.wanted.call == event.call), None)
    agent = call.meant.arguments.get("agent") if call is not None else None
    return (Child(job_id=end.job_id, agent=str(agent or "-"), step=event.step, call=event.call),)


def _decided(job: Job, event: e.DecisionMade) -> Changes:
    waited = job.life.waited
    over = waited is not None and waited.why == "children" and waited.wait_id == event.decision_id
    return {"overdue": True} if over else {}


CHANGES: dict[type[e.Event], Callable[[Job, Any], Changes]] = {
    e.JobSubmitted: _submitted,
    e.ModelCompleted: _answered,
    e.ChildStarted: _started,
    e.ToolCompleted: _completed,
    e.DecisionMade: _decided,
}
