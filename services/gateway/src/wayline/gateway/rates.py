"""Rates: how many requests and new jobs a tenant, a key and a user may make, as token buckets. Pure.

A bucket holds at most `burst` tokens and gains `per_minute` of them a minute; a request or a job takes one of each
bucket that it falls under.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, Literal, TypeAlias

Meter: TypeAlias = Literal["requests", "jobs"]
"""What is counted."""
Whose: TypeAlias = Literal["key", "user", "tenant"]
NARROWEST_FIRST: Final[tuple[Whose, ...]] = ("key", "user", "tenant")

MINUTE_S: Final = 60
BURST_S: Final = 10
"""A bucket without a size of its own holds what it gains in this time."""
SLICES_A_MINUTE_MIN: Final = 120
"""A gateway leases at most half a second's tokens: so much is lost with a process that is killed."""
SLICES_A_BURST_MIN: Final = 20


@dataclass(frozen=True, slots=True)
class Rate:
    """How many a minute, and how many at once after a pause."""

    per_minute: int
    burst: int

    @classmethod
    def of(cls, per_minute: int, burst: int | None = None) -> Rate:
        """Return a rate, whose bucket holds ten seconds' tokens where no size is given."""
        return cls(per_minute, burst or math.ceil(per_minute * BURST_S / MINUTE_S))

    @property
    def token_s(self) -> float:
        """Return how long the bucket takes to gain a token."""
        return MINUTE_S / self.per_minute

    @property
    def slice_max(self) -> int:
        """Return how many tokens a gateway may lease at once."""
        return max(1, min(self.per_minute // SLICES_A_MINUTE_MIN, self.burst // SLICES_A_BURST_MIN))


@dataclass(frozen=True, slots=True)
class Bucket:
    """One bucket of a tenant: its name is the same in all gateways."""

    name: str
    label: str
    """As headers and errors name it."""
    rate: Rate


@dataclass(frozen=True, slots=True)
class CallerRates:
    """The rates that hold for one API key."""

    rates: Mapping[tuple[Whose, Meter], Rate] = field(default_factory=dict)

    def buckets(self, meter: Meter, *, key_id: str, user_id: str | None) -> tuple[Bucket, ...]:
        """Return the buckets that a request or a job of this key takes a token of, the narrowest first."""
        if not self.rates:
            return ()
        # A user's id is personal, and a bucket outlives what is forgotten of its user.
        user = None if user_id is None else sha256(user_id.encode()).hexdigest()[:32]
        ids: dict[Whose, str | None] = {"key": key_id, "user": user, "tenant": ""}
        return tuple(
            Bucket(f"{meter}/{whose}/{ids[whose]}", whose if meter == "requests" else f"{whose}-jobs", rate)
            for whose in NARROWEST_FIRST
            if ids[whose] is not None and (rate := self.rates.get((whose, meter))) is not None
        )


NO_RATES: Final = CallerRates()


def policy_header(buckets: tuple[Bucket, ...]) -> str:
    """Return `RateLimit-Policy`: what each bucket gains a minute."""
    return ", ".join(f'"{bucket.label}";q={bucket.rate.per_minute};w={MINUTE_S}' for bucket in buckets)


def standing_header(standings: Mapping[Bucket, float]) -> str:
    """Return `RateLimit`: how many tokens each bucket has left, and after how many seconds it is full again."""
    told: list[str] = []
    for bucket, tokens in standings.items():
        left = min(bucket.rate.burst, math.floor(tokens))
        full_s = math.ceil((bucket.rate.burst - left) * bucket.rate.token_s)
        told.append(f'"{bucket.label}";r={left};t={full_s}')
    return ", ".join(told)
