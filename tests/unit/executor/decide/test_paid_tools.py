"""What calls of paid tools hold, and what they cost where nobody saw their end."""

from __future__ import annotations

from decimal import Decimal

import pytest

from wayline.contracts.chat import ToolCall
from wayline.contracts.events import Bounds
from wayline.contracts.money import JobCosts
from wayline.contracts.tool_charges import ToolCharge
from wayline.contracts.tools import ToolDefinition, ToolError, ToolReply
from wayline.executor.decide.paid_tools import charged, kept_usd, most_usd, need
from wayline.journal import Call, Job
from wayline.testkit.jobs import job_with

PAINT = ToolDefinition(
    name="paint",
    charge=ToolCharge(usd=Decimal("0.05"), argument="quality", by_value={"low": Decimal("0.01")}),
    input_schema={"type": "object"},
)
FREE = ToolDefinition(name="look")


def call(number: str, tool: str = "paint", **more) -> Call:
    arguments = more.pop("arguments", {})
    return Call(ToolCall(call=number, tool=tool, arguments=arguments), key=f"t/j/1/{number}", **more)


def job(*calls: Call, **fields) -> Job:
    return job_with(offered=(PAINT, FREE), calls=calls, **{"held_usd": Decimal("0.02"), **fields})


def total(wanted: Call, of: Job) -> Decimal | None:
    found = need(of, wanted)
    assert found is not None
    return found.total_usd


def test_the_most_follows_the_argument_that_the_price_depends_on():
    cheap, plain = call("1", arguments={"quality": "low"}), call("2")

    assert [most_usd(job(), one) for one in (cheap, plain, call("3", "look"))] == [
        Decimal("0.01"),
        Decimal("0.05"),
        Decimal(0),
    ]


def test_a_call_holds_what_is_spent_and_the_calls_before_it():
    calls = (call("1"), call("2", "look"), call("3"))

    assert total(calls[0], job(*calls, cost_usd=Decimal("0.01"))) == Decimal("0.06")
    assert total(calls[2], job(*calls, cost_usd=Decimal("0.01"))) == Decimal("0.11")


def test_what_is_held_already_is_not_asked_for_again():
    [paint] = calls = (call("1"),)

    assert need(job(*calls, held_usd=Decimal("0.05")), paint) is None
    assert need(job(*calls, held_usd=None), paint) is None
    assert need(job(), call("1", "look")) is None


def test_with_an_unknown_price_before_it_the_total_is_unknown():
    assert total(call("1"), job(call("1"), cost_usd=None)) is None


def test_an_undecided_call_goes_on_holding_its_most():
    waiting = call("2", decision_id="1-2")
    parked = job(call("1"), waiting, cost_usd=Decimal("0.01"))

    assert kept_usd(parked) == Decimal("0.06")
    assert total(parked.tools.calls[0], parked) == Decimal("0.11")
    assert kept_usd(job(waiting, held_usd=None)) is None


def ended(code: str | None = None, **fields) -> ToolReply:
    error = ToolError.model_validate({"code": code, "message": "no"}) if code else None
    return ToolReply(status="failed" if code else "success", error=error, **fields)


MOST = {"cost_usd": None, "unsettled": Bounds(lower_usd=Decimal(0), upper_usd=Decimal("0.05"))}


@pytest.mark.parametrize(
    ("reply", "cost"),
    [
        (ended(cost_usd=Decimal("0.02")), {"cost_usd": Decimal("0.02")}),
        (ended("tool_failed", cost_usd=Decimal(0)), {"cost_usd": Decimal(0)}),
        (ended("tool_failed"), MOST),
        (ended("timeout"), MOST),
        (ended(), MOST),
        (ended("cancelled"), MOST),
        (ended("cancelled", begun=False), {"cost_usd": None}),
        (ended("unavailable"), {"cost_usd": None}),
    ],
)
def test_an_uncounted_call_may_have_charged_its_most(reply: ToolReply, cost: dict):
    assert charged(job(), call("1"), reply) == cost


def test_a_call_made_again_may_have_charged_each_time():
    again = call("1", retried=1)

    assert charged(job(), again, ended(cost_usd=Decimal("0.02"))) == MOST | {"cost_usd": Decimal("0.02")}
    assert charged(job(), again, ended("timeout"))["unsettled"].upper_usd == Decimal("0.10")


def test_a_free_call_without_a_cost_is_settled():
    assert charged(job(costs=JobCosts()), call("1", "look"), ended("timeout")) == {"cost_usd": None}
