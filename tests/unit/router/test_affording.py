"""Whether a job can be paid for is known before it runs, as far as it can be."""

from decimal import Decimal

import pytest

from wayline.contracts.agents import Agent, AgentConfig
from wayline.contracts.jobs import JobOptions, Route, SubmitJob
from wayline.router.admission import Admitted, unaffordable

AGENT = Agent(name="assistant", version=1, config=AgentConfig())
CENT = Decimal("0.01")


def said(*, cost: Decimal | None, at_cap: str = "partial", **admitted: object) -> str | None:
    job = SubmitJob(agent="assistant", input="x", options=JobOptions.model_validate({"at_cap": at_cap}))
    route = Route(provider="p", model="m", tier="flash", reason="r", estimated_cost_usd=cost)
    allowed = Admitted(agent=AGENT, **{"cap_usd": Decimal("0.10"), **admitted})  # type: ignore[arg-type]
    refusal = unaffordable(job, route, allowed)
    return refusal and refusal[0]


def test_a_job_that_every_budget_has_room_for_is_let_in():
    assert said(cost=CENT) is None
    assert said(cost=CENT, left_usd=CENT, tightest="month") is None


@pytest.mark.parametrize("used_up", [{"left_usd": Decimal(0), "tightest": "month"}, {"cap_usd": Decimal(0)}])
def test_a_budget_that_is_used_up_refuses_unless_the_job_costs_nothing_or_would_rather_wait(used_up: dict[str, object]):
    assert said(cost=CENT, **used_up) == "budget_exhausted"
    assert said(cost=CENT, at_cap="park", **used_up) is None
    assert said(cost=Decimal(0), **used_up) is None


@pytest.mark.parametrize("hard", [{"cap_set": True}, {"left_usd": Decimal(9), "tightest": "month"}])
def test_an_unknown_price_is_refused_by_a_budget_that_somebody_set(hard: dict[str, object]):
    assert said(cost=None, **hard) == "price_unknown"
    assert said(cost=None, at_cap="park", **hard) == "price_unknown"


def test_an_unknown_price_passes_where_nobody_set_a_budget():
    assert said(cost=None) is None


@pytest.mark.parametrize(
    ("left", "cap_set", "bound"),
    [(None, False, None), (None, True, "0.10"), ("0.03", True, "0.03"), ("9", True, "0.10"), ("9", False, "9")],
)
def test_a_budget_for_each_job_bounds_its_route_and_the_default_does_not(left, cap_set, bound):
    left_usd = left and Decimal(left)
    admitted = Admitted(agent=AGENT, cap_usd=Decimal("0.10"), cap_set=cap_set, left_usd=left_usd)

    assert admitted.bound_usd == (bound and Decimal(bound))
