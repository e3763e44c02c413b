"""What a call can cost at most, what an uncounted one may have cost, and what a job does at its cap. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from wayline.contracts.budgets import OWN, Extended
from wayline.contracts.events import Bounds, Segment
from wayline.contracts.jobs import Failure, Waiting
from wayline.contracts.models import ModelCard, Slot
from wayline.contracts.money import Usage, dollars
from wayline.executor.decide.accept_answer import cut_short
from wayline.executor.decide.actions import Complete, Fail, Park, Reroute
from wayline.executor.decide.prompt_cache import warm_tokens
from wayline.executor.decide.retry_or_reroute import elsewhere
from wayline.journal import Job
from wayline.journal.costs import plus
from wayline.llm import ModelRequest, cost, media
from wayline.llm.deferred import found_tools, loaded_tokens
from wayline.llm.output_room import room_needed, room_within
from wayline.llm.prices import worst
from wayline.llm.thinking import output_max
from wayline.llm.tokens import estimate, most
from wayline.routing import next_route

SURE_BYTES_PER_TOKEN = 8
"""Half of what text usually takes: a lower bound has to hold for every text."""
PROTOCOL_TOKENS_MAX = 500
"""What a model without native tools is told beside its instructions."""


def most_tokens(request: ModelRequest, prefix: Sequence[Segment], *, on: ModelCard | None = None) -> int:
    """Return the most tokens that a prompt can have, `on` its own model or another; `prefix` is its parts."""
    card = on or request.card
    estimated = pieces = beside = 0
    for part in prefix:
        estimated += part.tokens
        pieces += part.count
    # Text may be denser than it was estimated; what is named is counted by rules of its own.
    for one in media.named(request.messages, request.attachments):
        estimated -= media.tokens(request.card, one)
        beside += media.most_tokens(card, one)
    estimated -= media.returned_tokens(request.card, request.messages, request.attachments)
    beside += media.returned_most_tokens(card, request.messages, request.attachments)
    there = request
    if on is not None:
        there = replace(request, card=on)
        estimated += loaded_tokens(there) - loaded_tokens(request)
    pieces += sum(map(len, found_tools(there).values()))
    if card.tools == "json":
        estimated += PROTOCOL_TOKENS_MAX
    if request.output_schema is not None:
        estimated += estimate(str(request.output_schema))
    return min(card.context_window, most(estimated, pieces=pieces) + beside)


def worst_usd(request: ModelRequest, prompt_tokens: int, *, at: datetime | None) -> Decimal | None:
    """Return the most a call can cost whose prompt has so many tokens at most; None: nobody knows its price."""
    return worst(request.card, prompt_tokens, request.max_output_tokens, at=at)


def fitted(job: Job, request: ModelRequest, prompt_tokens: int) -> ModelRequest:
    """Return the request with as much room for its output as the job's own budget pays, and no less than it needs.

    Only the job's own budget makes it shorter: what is left of one that is shared may be more a moment later.
    """
    assert job.routing.route is not None
    room = _room(job, request.card, job.routing.route.slot, tokens=prompt_tokens, wanted=request.max_output_tokens)
    return request if room >= request.max_output_tokens else replace(request, max_output_tokens=room)


def _room(job: Job, card: ModelCard, slot: Slot, *, tokens: int, wanted: int) -> int:
    """Return the room for output of the job's next call, with a prompt of so many tokens at most."""
    assert job.life.submitted is not None and job.routing.limits is not None
    left_usd = own_left(job)
    if left_usd is None:
        return wanted
    needed = room_needed(
        card,
        slot,
        job.routing.limits.max_output_tokens,
        effort=job.routing.config.effort if job.routing.config else None,
        observed=job.routing.candidates.observed_on(card.name, slot),
        longest_tokens=max((one.longest_tokens for one in job.money.used if one.model == card.name), default=0),
        exact=job.life.submitted.options.max_output_tokens is not None,
    )
    needed = min(needed, wanted)
    return room_within(card, tokens, wanted=wanted, needed=needed, usd_max=left_usd, at=job.at)


def own_left(job: Job) -> Decimal | None:
    """Return what is left of the job's own budget; None where none is held for it, or its cost is not known."""
    cap, spent_usd = _own_cap(job), plus(job.money.spent_usd, job.family.children_most_usd)
    return None if job.money.held_usd is None or cap is None or spent_usd is None else cap - spent_usd


def _own_cap(job: Job) -> Decimal | None:
    """Return what the job may spend: what it was raised to, else what it was admitted with."""
    own_usd, limits = job.money.budget_usd, job.routing.limits
    return own_usd if own_usd is not None or limits is None else limits.budget_usd


def unsettled(
    request: ModelRequest,
    worst_usd: Decimal | None,
    *,
    seen: Usage | None,
    streamed_bytes: int,
    at: datetime | None = None,
) -> Bounds:
    """Return the least and the most that an uncounted call can have cost: what came, and all that could come."""
    card, seen = request.card, seen or Usage()
    output_tokens = max(seen.output, streamed_bytes // SURE_BYTES_PER_TOKEN)
    lower = cost(card, seen.model_copy(update={"output": output_tokens}), at=at)
    upper = worst_usd
    if seen.input and upper is not None:
        # The provider itself has counted the prompt: better than an estimate.
        counted = cost(card, seen.model_copy(update={"output": request.max_output_tokens}), at=at)
        upper = counted if lower is None or counted is None else max(counted, lower)
    return Bounds(lower_usd=lower, upper_usd=upper if lower is None or upper is None else max(lower, upper))


def unseen(worst_usd: Decimal | None) -> Bounds:
    """Return the bounds of a call's cost of which nobody saw anything."""
    return Bounds(lower_usd=None if worst_usd is None else Decimal(0), upper_usd=worst_usd)


@dataclass(frozen=True, slots=True)
class Need:
    """What has to be held for a job in all before its next call; None: a price is unknown."""

    total_usd: Decimal | None


def shortfall(job: Job, worst_usd: Decimal | None) -> Need | None:
    """Return what to ask for before a call; None: it is held, or nothing has to be."""
    if job.money.held_usd is None or worst_usd == 0:
        return None
    if worst_usd is None or job.money.spent_usd is None:
        return Need(None)
    total = job.money.spent_usd + worst_usd
    return Need(total) if total > job.money.held_usd else None


def would_wait(job: Job) -> bool:
    """Return whether the job parks where a budget has no room for its next call."""
    assert job.life.submitted is not None
    return job.life.submitted.options.at_cap == "park" and not job.life.unanswered


def when_refused(
    job: Job,
    request: ModelRequest,
    refused: Extended,
    *,
    worst_usd: Decimal | None,
    prefix: Sequence[Segment],
    expires_at: datetime,
) -> Reroute | Park | Complete | Fail:
    """Choose what the job does where its budget has no room for its next call."""
    if worst_usd is None or job.money.spent_usd is None:
        name = request.card.name
        message = f"the price of {name} is unknown, and {_named(job, refused)} is a hard limit: give the model prices"
        why = f"the price of {name} is unknown"
        return elsewhere(job, "", why=why) or Fail(Failure(code="price_unknown", message=message))
    cheaper = _cheaper(job, request, refused, spent_usd=job.money.spent_usd, prefix=prefix)
    return cheaper or _at_cap(job, refused, worst_usd=worst_usd, expires_at=expires_at)


def _cheaper(
    job: Job, request: ModelRequest, refused: Extended, *, spent_usd: Decimal, prefix: Sequence[Segment]
) -> Reroute | None:
    """Choose a cheaper model for what is left of a budget, where the agent lets the router choose so."""
    assert job.routing.config is not None and job.routing.route is not None
    routing, effort = job.routing.config.routing, job.routing.config.effort
    if routing.mode != "auto" or not routing.budget_aware:
        return None
    left = refused.held_usd + (refused.left_usd or Decimal(0)) - spent_usd
    name = job.routing.route.name
    why = f"{dollars(max(left, Decimal(0)))} of the budget is left, less than a call of {name} can cost"
    answer_tokens = job.routing.limits.max_output_tokens if job.routing.limits else request.max_output_tokens

    def payable(card: ModelCard, slot: Slot) -> bool:
        tokens = most_tokens(request, prefix, on=card)
        room = _room(job, card, slot, tokens=tokens, wanted=output_max(card, slot, answer_tokens, effort=effort))
        dearest = worst(card, tokens, room, at=job.at)
        return dearest is not None and dearest <= left

    route = next_route(
        job.routing.candidates,
        job.routing.route,
        "budget",
        why=why,
        prompt_tokens=most_tokens(request, prefix),
        warm_tokens=warm_tokens(job),
        payable=payable,
    )
    return Reroute(route, "budget") if route else None


def _at_cap(job: Job, refused: Extended, *, worst_usd: Decimal, expires_at: datetime) -> Park | Complete | Fail:
    """Do what the job chose at its cap: to wait, or to end with what it has."""
    reason = no_room(job, refused, worst_usd)
    if would_wait(job):
        # A wait of its own each time: what was scheduled for an earlier one must not end this one.
        wait_id, question = f"budget-{job.seq}", f"{reason}. Raise it, and the job goes on where it is"
        name = _tenants_budget(refused)
        return Park(Waiting(why="budget", wait_id=wait_id, budget=name, question=question, expires_at=expires_at))
    return cut_short(job, reason, "budget_exhausted")


def wait_for_room(job: Job, refused: Extended, why: str, *, expires_at: datetime) -> Park | None:
    """Park a job that can do nothing without a call until a budget has room for it; None: no time brings that.

    The job's own budget begins never anew.
    """
    name = _tenants_budget(refused)
    if name is None or job.life.unanswered:
        return None
    wait_id = f"budget-{job.seq}"
    return Park(Waiting(why="budget", wait_id=wait_id, budget=name, question=why, expires_at=expires_at))


def no_room(job: Job, refused: Extended, worst_usd: Decimal) -> str:
    """Name the budget that a call does not fit into."""
    return f"{_named(job, refused)} has no room for a call of up to {dollars(worst_usd)}"


def _tenants_budget(refused: Extended) -> str | None:
    """Return the budget of the tenant that refused; None: the job's own did."""
    return None if refused.limited_by in ("", OWN) else refused.limited_by


def _named(job: Job, refused: Extended) -> str:
    """Name the budget that refused, as the beginning of a sentence; say how to set one that is a default."""
    if (name := _tenants_budget(refused)) is not None:
        return f"budget {name!r}"
    if job.family.parent is not None:
        return "the budget of the job that started this one"
    if job.money.budget_usd is None and job.routing.limits is not None and job.routing.limits.budget_usd is not None:
        return f"the {dollars(job.routing.limits.budget_usd)} that jobs may spend without an options.budget_usd"
    return "the job's own budget"
