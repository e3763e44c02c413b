"""What another policy does with a recorded job, and what that would have cost. No model is called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

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
from wayline.routing.choose import choose_again
from wayline.routing.policy import Policy


@dataclass(frozen=True)
class DecidedAgain:
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


def decide_again(log: Iterable[Mapping[str, Any]], policy: Policy) -> DecidedAgain | None:
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
    return DecidedAgain(
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
    """Return the route that a job was sent on before its first call."""
    moved = (event.route for event in events if isinstance(event, JobRerouted) and event.cause == "classification")
    return next(moved, routed.route)


def backtest_summary(policy: Policy, decided: Sequence[DecidedAgain]) -> dict[str, Any]:
    """Sum up tier and cost changes; costs are of the jobs whose prices are known before and after."""
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


def _told(one: DecidedAgain) -> dict[str, Any]:
    usd = {name: None if value is None else str(value) for name, value in vars(one).items() if name.endswith("_usd")}
    return {"job_id": one.job_id, "was": one.was, "now": one.now, "reason": one.reason, **usd}
