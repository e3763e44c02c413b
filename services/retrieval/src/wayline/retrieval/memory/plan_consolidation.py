"""What consolidation does to the facts of one owner: expire, merge, demote. Pure, and the same for the same facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from wayline.contracts.memory import Fact
from wayline.contracts.memory_consolidation import ConsolidationStep
from wayline.retrieval.memory.compare_facts import says_the_same
from wayline.retrieval.memory.fact_rules import expiry, out_of_date, relevance
from wayline.retrieval.memory.plan_save import Row

UNUSED_DAYS = 60
"""After so long without a word or a use of it an important memory is one of the context."""


@dataclass(frozen=True, slots=True)
class Step:
    """A change of one version of a fact."""

    told: ConsolidationStep
    row: Row
    """The version that is retired."""
    next_version: Row | None = None
    """What takes its place."""
    into: Row | None = None
    """The fact that absorbs it."""


def plan_consolidation(rows: Sequence[Row], now: datetime) -> list[Step]:
    """Return the changes of one owner's facts, none of which touches a fact twice."""
    over = {id(fact) for fact in out_of_date([row.fact for row in rows], now)}
    steps = [_step("expired", row, "its time is over") for row in rows if id(row.fact) in over]
    left = [row for row in rows if id(row.fact) not in over and row.fact.state == "active"]
    # What is worth most absorbs the others.
    left.sort(
        key=lambda row: (row.fact.trust != "own", -relevance(row.fact, now), row.fact.recorded_at, row.fact.fact_id)
    )
    kept: list[Row] = []
    for row in left:
        same = next((one for one in kept if _is_same(one, row)), None)
        if same is None:
            kept.append(row)
        else:
            steps.append(_step("merged", row, f"it says what {same.fact.fact_id} says", into=same))
    absorbing = {id(step.into) for step in steps}
    unused = [row for row in kept if _is_unused(row, now) and id(row) not in absorbing]
    return steps + [_demoted(row, now) for row in unused]


def before_of(fact: Fact, *, into: str | None) -> dict[str, Any]:
    """Return how a fact stood before a step, from which it is brought back; `into`: what took its place."""
    ends = fact.expires_at.isoformat() if fact.expires_at else None
    return {"state": fact.state, "tier": fact.tier, "times": fact.times, "into": into, "expires_at": ends}


def _is_same(one: Row, other: Row) -> bool:
    if one.fact.category != other.fact.category or one.fact.other_subject != other.fact.other_subject:
        return False
    keywords = tuple(frozenset(word.casefold() for word in row.fact.keywords) for row in (one, other))
    return says_the_same(
        one.words, other.words, keywords=(keywords[0], keywords[1]), vectors=(one.vector, other.vector)
    )


def _is_unused(row: Row, now: datetime) -> bool:
    fact = row.fact
    seen = max(fact.last_said_at, fact.last_used_at or fact.last_said_at)
    return fact.tier == "important" and not row.expiry_given and now - seen > timedelta(days=UNUSED_DAYS)


def _demoted(row: Row, now: datetime) -> Step:
    changed = {
        "tier": "context",
        "version": row.fact.version + 1,
        "recorded_at": now,
        "expires_at": expiry("context", now),
    }
    step = _step("demoted", row, f"neither said nor used for {UNUSED_DAYS} days")
    return replace(step, next_version=replace(row, fact=row.fact.model_copy(update=changed)))


def _step(what: str, row: Row, reason: str, *, into: Row | None = None) -> Step:
    told = ConsolidationStep.model_validate(
        {
            "what": what,
            "fact_id": row.fact.fact_id,
            "version": row.fact.version,
            "reason": reason,
            "into": into.fact.fact_id if into else None,
        }
    )
    return Step(told, row, into=into)
