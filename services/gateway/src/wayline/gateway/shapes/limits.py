"""Bodies about rates: what a tenant, its keys and its users may send, as an operator or an administrator sets it."""

from __future__ import annotations

from typing import Annotated, Any, Final, get_args

from pydantic import BaseModel, ConfigDict, Field

from wayline.gateway.rates import CallerRates, Meter, Rate, Whose
from wayline.gateway.settings import Settings
from wayline.gateway.shapes.body import Body

PER_MINUTE_MAX: Final = 1_000_000
Count = Annotated[int, Field(ge=1, le=PER_MINUTE_MAX)]


class RateBody(Body):
    """How many a minute, and how many at once after a pause."""

    per_minute: Count | None = Field(description="null: as many as they come.")
    burst: Count | None = Field(
        default=None, description="How many at once after a pause; null: what comes together in ten seconds."
    )


class MeterRates(Body):
    """How many requests, and how many new jobs."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"requests": {"per_minute": 600, "burst": 100}}]})

    requests: RateBody | None = Field(default=None, description="Left out: as set above it.")
    jobs: RateBody | None = Field(
        default=None,
        description="New ones through any door, with forks and runs of schedules. Left out: as set above it.",
    )


class LimitsBody(Body):
    """The rates of a tenant; what is left out is as the installation's settings say."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"tenant": {"requests": {"per_minute": 6000}, "jobs": {"per_minute": 300, "burst": 50}}},
            ]
        }
    )

    tenant: MeterRates = Field(default=MeterRates(), description="All its keys together.")
    key: MeterRates = Field(default=MeterRates(), description="Each of its keys that has no limits of its own.")
    user: MeterRates = Field(
        default=MeterRates(),
        description="Each of its users: the user of a key that acts for one, and the one that a job names.",
    )


class RateView(BaseModel):
    """A rate that holds."""

    per_minute: int
    burst: int


class MeterRatesView(BaseModel):
    """The rates that hold; null: as many as they come."""

    requests: RateView | None
    jobs: RateView | None


class TenantLimits(BaseModel):
    """What is set for a tenant, and what holds."""

    tenant: str
    limits: LimitsBody | None = Field(description="As it was saved; null: nothing was, so the installation's hold.")
    tenant_rates: MeterRatesView
    key_rates: MeterRatesView = Field(description="Of each key that has no limits of its own.")
    user_rates: MeterRatesView


class LimitsDeleted(BaseModel):
    """Whether a tenant had limits of its own."""

    deleted: bool


def read_limits(stored: dict[str, Any] | None) -> LimitsBody | None:
    """Return the limits of a row, which a newer version may have written with more than this one knows."""
    return None if stored is None else LimitsBody.model_validate(stored, extra="ignore")


def read_key_limits(stored: dict[str, Any] | None) -> MeterRates | None:
    """Return the limits of a key's row, likewise."""
    return None if stored is None else MeterRates.model_validate(stored, extra="ignore")


def default_limits(settings: Settings) -> LimitsBody:
    """Return the limits of an installation."""
    known = settings.model_dump()
    return LimitsBody(
        **{
            whose: MeterRates(
                **{meter: RateBody(per_minute=known[f"{whose}_{meter}_per_minute"]) for meter in get_args(Meter)}
            )
            for whose in get_args(Whose)
        }
    )


def rates_of(defaults: LimitsBody, limits: LimitsBody | None, key: MeterRates | None = None) -> CallerRates:
    """Return the rates that hold for a key: its own, else its tenant's, else the installation's."""
    holding: dict[tuple[Whose, Meter], Rate] = {}
    for whose in get_args(Whose):
        set_here = [getattr(limits, whose) if limits else None, getattr(defaults, whose)]
        for meter in get_args(Meter):
            asked = [key, *set_here] if whose == "key" else set_here
            found = next((rate for one in asked if one is not None and (rate := getattr(one, meter))), None)
            if found is not None and found.per_minute is not None:
                holding[whose, meter] = Rate.of(found.per_minute, found.burst)
    return CallerRates(holding)


def limits_view(tenant: str, limits: LimitsBody | None, defaults: LimitsBody) -> TenantLimits:
    """Return what is set for a tenant beside what holds."""
    rates = rates_of(defaults, limits).rates

    def view(whose: Whose) -> MeterRatesView:
        shown = {
            meter: None
            if (rate := rates.get((whose, meter))) is None
            else RateView(per_minute=rate.per_minute, burst=rate.burst)
            for meter in get_args(Meter)
        }
        return MeterRatesView(**shown)

    return TenantLimits(
        tenant=tenant, limits=limits, tenant_rates=view("tenant"), key_rates=view("key"), user_rates=view("user")
    )
