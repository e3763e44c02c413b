"""Whether a job can be paid for is known before it runs, as far as it can be."""

from decimal import Decimal
from typing import Any

import pytest

from wayline.contracts.agents import Agent, AgentConfig
from wayline.contracts.events import Candidates
from wayline.contracts.jobs import Failure, JobOptions, Route, SubmitJob
from wayline.router.admission.conditions import Admitted, unaffordable
from wayline.routing import Decision

AGENT = Agent(name="assistant", version=1, config=AgentConfig())
CENT = Decimal("0.01")


def refusal(
    *, cost: Decimal | None, call: Decimal | None = None, options: dict[str, object] | None = None, **admitted: Any
) -> Failure | None:
    job = SubmitJob(agent="assistant", input="x", options=JobOptions.model_validate(options or {}))
    route = Route(provider="p", model="m", tier="flash", reason="r", estimated_cost_usd=cost)
    allowed = Admitted(agent=AGENT, **{"cap_usd": Decimal("0.10"), **admitted})
    return unaffordable(job, Decision(route, Candidates(), "p/1", call), allowed)


def refusal_code(*, cost: Decimal | None, at_cap: str = "partial", **more: Any) -> str | None:
    found = refusal(cost=cost, options={"at_cap": at_cap}, **more)
    return found and found.code


@pytest.mark.parametrize(
    ("whose", "options", "admitted"),
    [
        ("the default, WAYLINE_ROUTER_JOB_BUDGET_USD", {}, {}),
        ("a budget for each job", {}, {"cap_set": True}),
        ("its own options.budget_usd", {"budget_usd": "0.10"}, {"cap_set": True}),
    ],
)
def test_a_job_unable_to_pay_one_call_is_refused_with_advice(
    whose: str, options: dict[str, object], admitted: dict[str, object]
):
    found = refusal(cost=CENT, call=Decimal("0.2048"), options=options, **admitted)

    assert found == Failure(
        code="budget_too_small",
        message=f"one call of p/m can cost $0.2048, and the job may spend $0.1 ({whose}): give it a larger "
        "options.budget_usd or a smaller options.max_output_tokens",
    )
    assert refusal(cost=CENT, call=Decimal("0.10"), options=options, **admitted) is None
    assert refusal(cost=CENT, call=Decimal("0.2048"), options={**options, "at_cap": "park"}, **admitted) is None


def test_a_job_that_every_budget_has_room_for_is_let_in():
    assert refusal_code(cost=CENT) is None
    assert refusal_code(cost=CENT, left_usd=CENT, tightest="month") is None


@pytest.mark.parametrize("used_up", [{"left_usd": Decimal(0), "tightest": "month"}, {"cap_usd": Decimal(0)}])
def test_a_used_up_budget_refuses_all_but_free_or_parking_jobs(used_up: dict[str, Any]):
    assert refusal_code(cost=CENT, **used_up) == "budget_exhausted"
    assert refusal_code(cost=CENT, at_cap="park", **used_up) is None
    assert refusal_code(cost=Decimal(0), **used_up) is None


@pytest.mark.parametrize("hard", [{"cap_set": True}, {"left_usd": Decimal(9), "tightest": "month"}])
def test_an_unknown_price_is_refused_under_a_set_budget(hard: dict[str, Any]):
    assert refusal_code(cost=None, **hard) == "price_unknown"
    assert refusal_code(cost=None, at_cap="park", **hard) == "price_unknown"


def test_an_unknown_price_passes_without_a_set_budget():
    assert refusal_code(cost=None) is None


@pytest.mark.parametrize(
    ("left", "cap_set", "bound"),
    [(None, False, None), (None, True, "0.10"), ("0.03", True, "0.03"), ("9", True, "0.10"), ("9", False, "9")],
)
def test_only_a_set_job_budget_bounds_the_route(left, cap_set, bound):
    left_usd = left and Decimal(left)
    admitted = Admitted(agent=AGENT, cap_usd=Decimal("0.10"), cap_set=cap_set, left_usd=left_usd)

    assert admitted.bound_usd == (bound and Decimal(bound))


@pytest.mark.parametrize(
    ("whose", "options", "admitted"),
    [
        ("the default, WAYLINE_ROUTER_JOB_BUDGET_USD: give it an options.budget_usd", {}, {}),
        ("a budget for each job: raise it", {}, {"cap_set": True}),
        ("its own options.budget_usd: give it a larger one", {"budget_usd": "0"}, {"cap_set": True}),
    ],
)
def test_a_refusal_names_the_budget_of_zero(whose: str, options: dict[str, object], admitted: dict[str, Any]):
    found = refusal(cost=CENT, cap_usd=Decimal(0), options=options, **admitted)

    assert found == Failure(code="budget_exhausted", message=f"the job may spend $0 ({whose})")
