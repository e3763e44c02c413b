"""How long facts count, how many there may be, and which goes first. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from wayline.contracts.memory import CAPS, Fact, FactKind, FactTrust, Tier

AGES_DAYS: dict[Tier, int | None] = {"core": None, "important": 90, "context": 30}
"""How long after it was said last a memory of a tier counts."""
INFERRED_CONFIDENCE_MAX = 0.5
"""Of what no words of the user stand behind."""
INFERRED_TIER: Tier = "context"
INSIGHTS_PER_SUBJECT_MAX = 200
QUARANTINED_MAX = 50
"""Facts of one owner that wait for a person; the oldest goes."""
RETIRED_MAX = 1_000
"""Versions of one owner's facts that are history; the oldest goes."""
KEYS_KEPT_DAYS = 31
"""How long a key is known: longer than a job's log, from which calls are repeated."""
HALF_LIFE_DAYS = 90.0
"""After so long without a word of it a fact weighs half."""
TIER_WEIGHT: dict[Tier | None, float] = {"core": 3.0, "important": 2.0, "context": 1.0, None: 1.0}
CATEGORIES: dict[FactKind, frozenset[str]] = {
    "memory": frozenset({"profile", "preference", "technical", "project"}),
    "insight": frozenset({"preference", "objection", "timeline", "motivation", "relationship"}),
}


class Live(Protocol):
    """A fact that is not history."""

    @property
    def fact(self) -> Fact: ...


L = TypeVar("L", bound=Live)


def grounded_tier(tier: Tier, trust: FactTrust) -> Tier:
    """Return the tier of a fact: what is not the user's own words stays in the lowest."""
    return tier if trust == "own" else INFERRED_TIER


def grounded_confidence(confidence: float, trust: FactTrust) -> float:
    """Return how sure a fact may be."""
    return confidence if trust == "own" else min(confidence, INFERRED_CONFIDENCE_MAX)


def expiry(tier: Tier | None, said_at: datetime) -> datetime | None:
    """Return when a fact of a tier ends that was said last at this time; None: never."""
    days = AGES_DAYS[tier] if tier is not None else None
    return None if days is None else said_at + timedelta(days=days)


def relevance(fact: Fact, now: datetime) -> float:
    """Return what a fact is worth now: by tier or importance, confidence, uses, and decaying with its age."""
    seen = max(fact.last_said_at, fact.last_used_at or fact.last_said_at)
    age_days = max(0.0, (now - seen) / timedelta(days=1))
    weight = TIER_WEIGHT[fact.tier] if fact.kind == "memory" else fact.importance / 5
    return weight * fact.confidence * (1 + math.log1p(fact.uses + fact.times - 1)) * 0.5 ** (age_days / HALF_LIFE_DAYS)


def out_of_date(live: Iterable[L], now: datetime) -> list[L]:
    """Return the facts whose time is over."""
    return [one for one in live if one.fact.expires_at is not None and one.fact.expires_at <= now]


def over_caps(live: Iterable[L], now: datetime, *, keep: L | None = None) -> list[L]:
    """Return the least relevant facts of each tier that is too full, but for one that a person has just decided on.

    Of two that are alike the older one goes.
    """
    groups: dict[str, list[L]] = {}
    for one in live:
        groups.setdefault(_group(one.fact), []).append(one)
    surplus: list[L] = []
    for group, members in groups.items():
        extra = len(members) - _cap(group)
        if extra > 0:
            surplus += sorted(members, key=lambda one: (one is keep, _rank(one.fact, now, group)))[:extra]
    return surplus


def _group(fact: Fact) -> str:
    if fact.state == "quarantined":
        return "quarantined"
    return fact.tier or "insight"


def _cap(group: str) -> int:
    if group == "quarantined":
        return QUARANTINED_MAX
    return INSIGHTS_PER_SUBJECT_MAX if group == "insight" else CAPS[group]  # type: ignore[index]


def _rank(fact: Fact, now: datetime, group: str) -> tuple[float, datetime, str]:
    worth = 0.0 if group == "quarantined" else relevance(fact, now)
    return (worth, fact.recorded_at, fact.fact_id)
