"""Replays a log event by event and stops at the first difference. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from wayline.contracts import events as e
from wayline.contracts.models import ModelCard
from wayline.executor.replay.checks import CHECKS, Difference, Place, What
from wayline.journal import History, Job, evolve, with_history
from wayline.llm import cost

EVERYTHING: frozenset[What] = frozenset({"decision", "prompt", "note", "arguments", "result"})
SIGNALS = (e.CancelRequested, e.BudgetRaised, e.DecisionMade, e.ApprovalDecided)
"""Heard while something was being done: what followed may have been decided before."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first event that would be another one now."""

    seq: int
    step: int
    event: str
    what: What
    recorded: str
    now: str


@dataclass(frozen=True, slots=True)
class Cost:
    """What the recorded calls cost, and what they would cost at the prices of the models that make them now."""

    recorded_usd: Decimal | None
    now_usd: Decimal | None

    @property
    def difference_usd(self) -> Decimal | None:
        """Return how much more it would cost; None: a price is unknown."""
        return None if self.recorded_usd is None or self.now_usd is None else self.now_usd - self.recorded_usd


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of replaying a log."""

    job_id: str
    events: int
    steps: int
    divergence: Divergence | None
    cost: Cost
    is_history_compared: bool = True
    """False: it goes on from a session's history that is not at hand: hashes of messages were not compared."""

    @property
    def is_identical(self) -> bool:
        """Return whether the code does today what was recorded."""
        return self.divergence is None


def replay(
    events: Sequence[e.Event], *, history: History | None = None, compare: Collection[What] = EVERYTHING
) -> Replay:
    """Run the executor's decisions and prompts over a log with its recorded results.

    `history`: what its session's jobs before it said, as it was pinned. `compare`: which differences count. A log
    that has not ended is replayed as far as it goes.
    """
    is_compared = True
    place, divergence = Place(), None
    heard_after: Job | None = None
    for event in events:
        if isinstance(event, SIGNALS):
            heard_after = heard_after or place.job
        elif event.type in _CHECKED:
            difference = _difference(place, event, heard_after)
            if divergence is None and difference is not None and difference.what in compare:
                divergence = _divergence(place.job, event, difference)
            heard_after = None
        place.discovered = event if isinstance(event, e.ToolsDiscovered) else None
        place.lost = event if isinstance(event, e.SessionContinued) and event.lost is not None else None
        place.job = evolve(place.job, event)
        continued = place.job.session.continued
        if (
            isinstance(event, e.SessionContinued | e.JobForked)
            and continued is not None
            and continued.after is not None
        ):
            is_compared = history is not None
            place.job = with_history(place.job, history or (), is_unbound=continued.unbound)
    job = place.job
    return Replay(job.job_id, len(events), job.model.step, divergence, _cost(events, job), is_compared)


_CHECKED = {kind.model_fields["type"].default: check for kind, check in CHECKS.items()}


def _difference(place: Place, event: e.Event, heard_after: Job | None) -> Difference | None:
    check: Callable[[Place, Any], Difference | None] = _CHECKED[event.type]
    difference = check(place, event)
    if difference is None or difference.what != "decision" or heard_after is None:
        return difference
    # Decided before a signal was heard, and done all the same: the call was made by then.
    before = replace(place, job=heard_after)
    return difference if check(before, event) is not None else None


def _divergence(job: Job, event: e.Event, difference: Difference) -> Divergence:
    step = getattr(event, "step", None) or job.model.step
    return Divergence(event.seq, step, event.type, difference.what, difference.recorded, difference.now)


Answered = e.ModelCompleted | e.ModelFailed | e.AuxiliaryCompleted | e.AuxiliaryFailed


def _cost(events: Sequence[e.Event], job: Job) -> Cost:
    recorded: Decimal | None = Decimal(0)
    now: Decimal | None = Decimal(0)
    asked: dict[str, e.ModelRequested | e.AuxiliaryRequested] = {}
    for event in events:
        if isinstance(event, e.ModelRequested | e.AuxiliaryRequested):
            asked[event.attempt_id] = event
        elif isinstance(event, Answered) and event.usage is not None and event.unsettled is None:
            recorded = _plus(recorded, event.cost_usd)
            now = _plus(now, _price(job, event, asked.get(event.attempt_id)))
        elif isinstance(event, e.ToolCompleted) and event.cost_usd is not None:
            recorded, now = _plus(recorded, event.cost_usd), _plus(now, event.cost_usd)
    return Cost(recorded, now)


def _price(job: Job, event: Answered, asked: e.ModelRequested | e.AuxiliaryRequested | None) -> Decimal | None:
    """Return what a recorded call costs at the prices of its model; as recorded where its model is not known."""
    card: ModelCard | None = None if asked is None else job.routing.candidates.card(f"{asked.provider}/{asked.model}")
    if asked is None or card is None or event.usage is None or not event.usage.total:
        return event.cost_usd
    return cost(card, event.usage, at=asked.at)


def _plus(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    return None if one is None or other is None else one + other
