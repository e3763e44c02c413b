"""How long facts count, how many there may be, and which goes first. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol, TypeVar

from wayline.contracts.memory import CAPS, FactKind, FactState, FactTrust, Tier

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


class Ranked(Protocol):
    """What is needed of a fact to tell how long it counts and which goes first."""

    @property
    def fact_id(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def kind(self) -> FactKind: ...
    @property
    def tier(self) -> Tier | None: ...
    @property
    def state(self) -> FactState: ...
    @property
    def importance(self) -> int: ...
    @property
    def confidence(self) -> float: ...
    @property
    def uses(self) -> int: ...
    @property
    def times(self) -> int: ...
    @property
    def last_said_at(self) -> datetime: ...
    @property
    def last_used_at(self) -> datetime | None: ...
    @property
    def expires_at(self) -> datetime | None: ...
    @property
    def recorded_at(self) -> datetime: ...


class Standing(NamedTuple):
    """How a stored fact stands, without its words: all that is read of those a new one is not compared with."""

    fact_id: str
    version: int
    kind: FactKind
    tier: Tier | None
    state: FactState
    importance: int
    confidence: float
    uses: int
    times: int
    last_said_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None
    recorded_at: datetime
    is_embedded: bool = True
    is_compared: bool = False
    """Whether a new fact may repeat or contradict it, or names it."""


R = TypeVar("R", bound=Ranked)


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


def relevance(fact: Ranked, now: datetime) -> float:
    """Return what a fact is worth now: by tier or importance, confidence, uses, and decaying with its age."""
    seen = max(fact.last_said_at, fact.last_used_at or fact.last_said_at)
    age_days = max(0.0, (now - seen) / timedelta(days=1))
    weight = TIER_WEIGHT[fact.tier] if fact.kind == "memory" else fact.importance / 5
    return weight * fact.confidence * (1 + math.log1p(fact.uses + fact.times - 1)) * 0.5 ** (age_days / HALF_LIFE_DAYS)


def out_of_date(live: Iterable[R], now: datetime) -> list[R]:
    """Return the facts whose time is over."""
    return [one for one in live if one.expires_at is not None and one.expires_at <= now]


def over_caps(live: Iterable[R], now: datetime, *, keep: R | None = None) -> list[R]:
    """Return the least relevant facts of each tier that is too full, but for one that a person has just decided on.

    Of two that are alike the older one goes.
    """
    groups: dict[str, list[R]] = {}
    for one in live:
        groups.setdefault(_group(one), []).append(one)
    surplus: list[R] = []
    for group, members in groups.items():
        extra = len(members) - _cap(group)
        if extra > 0:
            surplus += sorted(members, key=lambda one: (one is keep, _rank(one, now, group)))[:extra]
    return surplus


def _group(fact: Ranked) -> str:
    if fact.state == "quarantined":
        return "quarantined"
    return fact.tier or "insight"


def _cap(group: str) -> int:
    if group == "quarantined":
        return QUARANTINED_MAX
    return INSIGHTS_PER_SUBJECT_MAX if group == "insight" else CAPS[group]  # type: ignore[index]


def _rank(fact: Ranked, now: datetime, group: str) -> tuple[float, datetime, str]:
    worth = 0.0 if group == "quarantined" else relevance(fact, now)
    return (worth, fact.recorded_at, fact.fact_id)
