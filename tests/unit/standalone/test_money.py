"""Money as the command line shows it: what is unknown is said, what is nothing is left out."""

from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from wayline.standalone.terminal.job_views import job_line, planned
from wayline.standalone.terminal.money_views import budgets_table, costs_table, job_costs

ENDED: dict[str, Any] = {
    "job_id": "j1",
    "status": "completed",
    "steps": 2,
    "usage": None,
    "cost_usd": "0.01",
    "partial": False,
    "reason": None,
}


def without_style(markup: str) -> str:
    return Text.from_markup(markup).plain


def shown(what: Any) -> list[list[str]]:
    console = Console(width=250, record=True, force_terminal=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(what)
    return [[word.strip() for word in line.split("  ") if word.strip()] for line in console.export_text().splitlines()]


def row(cost: str, **more: Any) -> dict[str, Any]:
    return {
        "group": {"model": "claude", "day": "2026-05-01"},
        "calls": 3,
        "calls_unknown": 0,
        "usage": {"input": 1000, "output": 20},
        "cost_usd": cost,
        "cache_read_share": 0.9,
        "saved_usd": "0.004",
        "lost_usd": "0",
        "calls_unsettled": 0,
        "unsettled_lower_usd": "0",
        "unsettled_upper_usd": "0",
        **more,
    }


def test_costs_show_caches_unknown_prices_and_bounds_and_a_total():
    open_call = {"calls_unsettled": 1, "unsettled_lower_usd": "0.001", "unsettled_upper_usd": None}
    rows = [row("0.1"), row("0.2", calls_unknown=2, **open_call)]
    lines = shown(costs_table({"rows": rows, "total": row("0.3", calls=6, calls_unknown=2), "groups": 2}))

    assert lines[1] == ["claude", "2026-05-01", "3", "1000", "90%", "20", "$0.1", "$0.004"]
    assert lines[2][6:] == ["$0.2 + 2 unknown", "$0.004", "1 calls, $0.001 to unknown"]
    assert lines[3] == ["total", "6", "1000", "90%", "20", "$0.3 + 2 unknown", "$0.004"]


def test_a_cut_cost_table_is_marked_and_totals_all_groups():
    lines = shown(costs_table({"rows": [row("0.2"), row("0.1")], "total": row("9", calls=900), "groups": 1_002}))

    assert lines[3][:2] == ["total, with 1000 cheaper groups that are not shown", "900"]
    assert "$9" in lines[3]


def test_a_jobs_cost_is_listed_by_purpose():
    costs = {"model": {"p/a": "0.01", "p/b": None}, "tool": {"search": "0.002"}, "aux": {"classification": "0"}}
    job = {"costs": {**costs, "saved_usd": "0.003", "lost_usd": "0"}}

    assert job_costs(job) == "p/a $0.01 · p/b cost unknown · search $0.002 · the prompt cache saved $0.003"
    assert job_costs({"costs": None}) == ""


def test_a_jobs_last_line_shows_the_cache_savings():
    assert "cache saved $0.003" in job_line({**ENDED, "costs": {"saved_usd": "0.003"}})
    assert "cache" not in job_line({**ENDED, "costs": {"saved_usd": "0"}})


@pytest.mark.parametrize(("spared", "told"), [(1_200, "saved 1,200 tokens"), (-30, "cost 30 tokens")])
def test_a_jobs_line_says_what_tool_search_saved_or_cost(spared: int, told: str):
    assert f"tool search {told}" in job_line({**ENDED, "costs": {"tool_tokens_saved": spared}})


def test_a_jobs_last_line_shows_why_it_is_partial():
    partial = {**ENDED, "partial": True, "reason": "the job's 2 steps are used up"}

    assert "· partial: the job's 2 steps are used up ·" in without_style(job_line(partial))
    assert "· partial: a limit was reached ·" in without_style(job_line({**partial, "reason": None}))
    assert "cancelled · changed my mind ·" in without_style(
        job_line({**ENDED, "status": "cancelled", "reason": "changed my mind"})
    )
    assert "[" in without_style(job_line({**partial, "reason": "a [step] of the agent"}))


def test_a_dry_run_shows_its_cost_range_and_refusal():
    route = {
        "provider": "p",
        "model": "m",
        "reason": "the job asked for it",
        "classifier": None,
        "estimated_cost_usd": "0.02",
        "estimated_cost_range_usd": ["0.001", "0.1"],
    }
    plan = {"agent": "assistant", "agent_version": 3, "route": route, "refusal": None}
    refused = {**plan, "refusal": {"code": "budget_too_small", "message": "one call can cost $0.2"}}
    asking = {**plan, "route": {**route, "classifier": "p/small"}}
    unknown = {**plan, "route": {**route, "estimated_cost_usd": None, "estimated_cost_range_usd": None}}

    assert shown(planned(plan)) == [
        ["assistant v3 on p/m"],
        ["the job asked for it"],
        ["expected to cost $0.02, between $0.001 and $0.1; nothing was run"],
    ]
    assert shown(planned(refused))[3] == ["it would be refused: one call can cost $0.2"]
    assert shown(planned(asking))[2] == ["p/small would be asked first which type of task it is"]
    assert shown(planned(unknown))[2] == ["its cost is unknown; nothing was run"]


def test_budgets_show_what_is_spent_held_and_left():
    budget = {
        "name": "day",
        "limit_usd": "5",
        "window": "day",
        "timezone": "Europe/Berlin",
        "agent": None,
        "user_id": "alice",
        "hard": False,
        "spent_usd": "3",
        "reserved_usd": "1.5",
        "unsettled_usd": "0",
        "left_usd": "0.5",
        "waiting_jobs": 2,
        "raised": [{"threshold": "0.8"}],
    }

    lines = shown(budgets_table({"budgets": [budget]}))

    assert lines[1] == ["day", "$5 soft", "day Europe/Berlin", "user alice", "$3", "$1.5", "$0.5", "2", "80%"]
    assert shown(budgets_table({"budgets": [], "job_budget_usd": "0.10"})) == [
        ["no budgets: a job may spend $0.1 of its own"]
    ]
