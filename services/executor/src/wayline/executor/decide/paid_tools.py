"""What calls of tools can cost at most, what has to be held for them, and what an uncounted one may have cost. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from wayline.contracts.events import Bounds
from wayline.contracts.tools import ToolReply
from wayline.executor.decide.approvals import arguments_of
from wayline.executor.decide.worst_case import Need
from wayline.journal import Call, Job

NOTHING = Decimal(0)


def most_usd(job: Job, call: Call) -> Decimal:
    """Return the most that one call can cost; zero where its tool says nothing of a charge."""
    definition = job.tools.definition(call.meant.tool)
    if definition is None or definition.charge is None:
        return NOTHING
    return definition.charge.most(arguments_of(job, call))


def need(job: Job, call: Call) -> Need | None:
    """Return what to have held before a call that has its intent; None: it is held, or nothing has to be.

    Calls beside it each hold for themselves: what those before it take is counted first, so that the last of them is
    refused and not all.
    """
    money = job.money
    if money.held_usd is None:
        return None
    worst = most_usd(job, call)
    if not worst:
        return None
    if money.spent_usd is None:
        return Need(None)
    others = [one for one in _begun(job) if one.wanted.call != call.wanted.call]
    numbers = [one.wanted.call for one in _begun(job)]
    place = numbers.index(call.wanted.call) if call.wanted.call in numbers else len(numbers)
    first = [one for one in others if one.undecided or numbers.index(one.wanted.call) < place]
    total = money.spent_usd + worst + _most(job, first)
    return Need(total) if total > money.held_usd else None


def kept_usd(job: Job) -> Decimal | None:
    """Return what a parked job goes on holding: what it spent, and what calls of unknown outcome may have charged."""
    if job.money.held_usd is None or job.money.spent_usd is None:
        return job.money.held_usd and job.money.spent_usd
    return job.money.spent_usd + _most(job, (one for one in _begun(job) if one.undecided))


def charged(job: Job, call: Call, reply: ToolReply) -> dict[str, Any]:
    """Return what an ended call cost, as fields of `ToolCompleted`; where nobody can say, between what.

    A call that was made again because nobody knew what it had done may have charged each time.
    """
    worst = most_usd(job, call)
    uncounted = call.retried + reply.may_have_charged
    if not worst or not uncounted:
        return {"cost_usd": reply.cost_usd}
    return {"cost_usd": reply.cost_usd, "unsettled": Bounds(lower_usd=NOTHING, upper_usd=worst * uncounted)}


def _begun(job: Job) -> list[Call]:
    """Return the open calls whose intent is in the log, those of a program first."""
    return [one for one in (*job.code.program_calls, *job.tools.calls) if one.key is not None and one.done is None]


def _most(job: Job, calls: Iterable[Call]) -> Decimal:
    return sum((most_usd(job, one) for one in calls), NOTHING)
