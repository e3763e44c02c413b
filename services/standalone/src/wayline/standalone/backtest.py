"""What another routing policy would have done with the jobs that ran: decided again from their logs, calling nobody."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from wayline.contracts.errors import Reject
from wayline.contracts.events import (
    AuxiliaryCompleted,
    Event,
    JobRerouted,
    JobRouted,
    JobSubmitted,
    ModelCompleted,
    TaskClassified,
    read_event,
)
from wayline.contracts.jobs import Route
from wayline.contracts.money import cost_sum
from wayline.llm.prices import cost
from wayline.router.policy import Policy, named, overridden
from wayline.router.routing import choose_again
from wayline.standalone.client import ApiError

if TYPE_CHECKING:
    from wayline.standalone.client import Api

PAGE = 50
GONE = 404
JOBS_MAX = 10_000
"""Of the newest jobs; a longer history is not read."""


@dataclass(frozen=True)
class Again:
    """One job, as it was routed and as the policy routes it."""

    job_id: str
    by: str
    """The policy that decided."""
    was: str
    was_tier: str
    now: str
    now_tier: str
    reason: str
    same: bool
    """Whether the whole route is the same, with its reason and what was predicted."""
    was_usd: Decimal | None
    now_usd: Decimal | None
    """None: a price is unknown."""


def policy_of(said: str) -> Policy:
    """A policy by its name, or the bundled one with what a JSON or YAML file says otherwise. Raises ValueError."""
    known = named(said)
    if known is not None:
        return known
    path = Path(said)
    if not path.is_file():
        raise ValueError(f"{said!r} is neither a policy (current, locked, all-standard, all-premium) nor a file")
    try:
        return overridden(path.stem, _read(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{path}: {where}: {first['msg']}") from None


def _read(path: Path) -> Mapping[str, Any]:
    import yaml

    try:
        said = json.loads(path.read_text()) if path.suffix == ".json" else yaml.safe_load(path.read_text())
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if not isinstance(said, dict):
        raise ValueError(f"{path} must hold names and values: tiers, moves, levels, weights …")
    return said


def again(log: Iterable[Mapping[str, Any]], policy: Policy) -> Again | None:
    """Decide a recorded job once more, with what a classification said of it; None where the log has no route."""
    events = [read_event(dict(event)) for event in log]
    first = next((event for event in events if isinstance(event, JobSubmitted)), None)
    routed = next((event for event in events if isinstance(event, JobRouted)), None)
    if first is None or routed is None:
        return None
    task_type = next((event.task_type for event in events if isinstance(event, TaskClassified)), None)
    went = _went(routed, events)
    asks = bool(routed.candidates.tasks)
    try:
        decision = choose_again(first.job, routed, policy=policy, task_type=task_type)
        route, asks = decision.route, bool(decision.candidates.tasks)
    except Reject as refused:
        # What the policy would refuse ran all the same; its cost is kept, so that nothing is saved by refusing.
        route = went.model_copy(update={"reason": f"refused: {refused}"})
    # Of the others nobody knows what they used.
    counted = [event for event in events if not getattr(event, "unsettled", None)]
    calls = [event for event in counted if isinstance(event, ModelCompleted)]
    asides = [event.cost_usd for event in counted if isinstance(event, AuxiliaryCompleted) and _classifies(event)]
    was_usd = cost_sum([*(call.cost_usd for call in calls), *asides])
    card = routed.candidates.card(route.name)
    same_model = route.name == went.name
    again_usd = [call.cost_usd if same_model else card and cost(card, call.usage) for call in calls]
    return Again(
        job_id=routed.job_id,
        by=routed.policy,
        was=went.name,
        was_tier=went.tier,
        now=route.name,
        now_tier=route.tier,
        reason=route.reason,
        same=route == went,
        was_usd=was_usd,
        now_usd=cost_sum([*again_usd, *(asides if asks else [])]),
    )


def _classifies(event: AuxiliaryCompleted) -> bool:
    return event.purpose == "classification"


def _went(routed: JobRouted, events: Iterable[Event]) -> Route:
    """The route that a job was sent on before its first call."""
    moved = (event.route for event in events if isinstance(event, JobRerouted) and event.cause == "classification")
    return next(moved, routed.route)


def summary(policy: Policy, decided: list[Again]) -> dict[str, Any]:
    """Tier and cost changes, as JSON says them; costs are of the jobs whose prices are known before and after."""
    priced = [one for one in decided if one.was_usd is not None and one.now_usd is not None]
    tiers = Counter((one.was_tier, one.now_tier) for one in decided)
    changed = [one for one in decided if not one.same]
    return {
        "policy": policy.label,
        "jobs": len(decided),
        "same": len(decided) - len(changed),
        "decided_by": dict(Counter(one.by for one in decided)),
        "tiers": [{"was": was, "now": now, "jobs": jobs} for (was, now), jobs in sorted(tiers.items())],
        "was_usd": str(cost_sum([one.was_usd for one in priced])),
        "now_usd": str(cost_sum([one.now_usd for one in priced])),
        "unknown_cost": len(decided) - len(priced),
        "changed": [_told(one) for one in changed],
    }


def _told(one: Again) -> dict[str, Any]:
    usd = {name: None if value is None else str(value) for name, value in vars(one).items() if name.endswith("_usd")}
    return {"job_id": one.job_id, "was": one.was, "now": one.now, "reason": one.reason, **usd}


async def backtest(api: Api, policy: Policy, *, since: datetime) -> dict[str, Any]:
    """Read every job since then and decide it again; a job whose log has aged out is counted and left out."""
    decided, aged_out = [], 0
    async for log in _logs(api, since):
        # A log ages out from its beginning: what is left of it does not say how the job was routed.
        if log is None or not any(event.get("seq") == 1 for event in log):
            aged_out += 1
        elif (one := again(log, policy)) is not None:
            decided.append(one)
    return summary(policy, decided) | {"aged_out": aged_out}


async def _logs(api: Api, since: datetime) -> AsyncIterator[list[dict[str, Any]] | None]:
    """Read the log of every job since then, newest first; None where it is not there any more."""
    cursor, seen = None, 0
    while seen < JOBS_MAX:
        page = await api.get("/v1/jobs", limit=PAGE, cursor=cursor)
        recent = [job for job in page["jobs"] if datetime.fromisoformat(job["created_at"]) >= since]
        for job in recent:
            yield await _log(api, job["job_id"])
        seen, cursor = seen + len(recent), page.get("next_cursor")
        if cursor is None or len(recent) < len(page["jobs"]):
            return


async def _log(api: Api, job_id: str) -> list[dict[str, Any]] | None:
    try:
        return await api.log(job_id)
    except ApiError as error:
        # Logs are kept for 30 days, the list of jobs for longer.
        if error.status == GONE:
            return None
        raise
