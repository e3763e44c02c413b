"""Costs and budgets as pages: every figure is the API's, and what can be searched leads to its jobs."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from wayline.console.pages.budgets import Draft, NotANumber
from wayline.console.pages.costs import DAYS, GROUPS, TEMPLATE, Asked, Costs, read
from wayline.console.pages.frame import Frame
from wayline.console.pages.job_search import parse
from wayline.console.render.budget_bar import used_of
from wayline.console.render.environment import Templates

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
ME = {"tenant": "acme", "name": "ann", "scopes": ["read"], "open": False, "version": "1"}
FRAME = Frame("Costs", "/costs", ME, "token", "system", "/costs", now=NOW)
USAGE = {"input": 1200, "output": 80}
BUDGET: dict[str, Any] = {
    **{"name": "month", "limit_usd": "10", "window": "month", "timezone": "UTC", "agent": None, "user_id": None},
    **{"hard": True, "alerts": ["0.5", "0.825"], "spent_usd": "6", "reserved_usd": "3", "unsettled_usd": "2"},
    **{"unsettled_jobs": 1, "left_usd": "0", "waiting_jobs": 4, "starts_at": None, "ends_at": None},
    "raised": [{"threshold": "0.5", "at": "2026-05-01T11:00:00Z", "used_usd": "5.1", "limit_usd": "10"}],
}


def row(group: dict[str, str], cost: str | None, **more: Any) -> dict[str, Any]:
    money = {"cost_usd": cost, "saved_usd": "0.3", "lost_usd": "0.1", "predicted_usd": None, "cache_read_share": None}
    calls = {"calls": 2, "calls_unknown": 0, "calls_unsettled": 0}
    return {"group": group, "usage": USAGE, **money, **calls, **more}


class Api:
    """A client that was told these costs."""

    def __init__(self, total: dict[str, Any] | None) -> None:
        self.total = total
        self.asked: list[dict[str, Any]] = []

    async def get(self, path: str, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        by = asked["group_by"]
        rows = [row({by: "b"}, "0.25"), row({by: "a"}, "1.5", predicted_usd="2"), row({by: "-"}, "0")]
        if by in ("day", "hour"):
            rows = [row({by: f"2026-05-0{day}"}, "1") for day in (2, 1)]
        return {"rows": rows if self.total else [], "total": self.total, "groups": 3 if self.total else 0}

    async def whole(self, path: str, name: str) -> dict[str, Any]:
        return {name: [BUDGET], "job_budget_usd": "0.10"}


async def page_of(asked: Asked, total: dict[str, Any] | None) -> tuple[Costs, str]:
    found = await read(Api(total), asked, now=NOW)  # pyright: ignore[reportArgumentType]
    return found, Templates().render(TEMPLATE, page=found, frame=FRAME, groups=GROUPS, day_choices=DAYS).decode()


@pytest.mark.parametrize("by", list(GROUPS))
async def test_costs_are_shown_by_every_group_they_have(by: str):
    found, html = await page_of(Asked(by=by), row({}, "1.75", predicted_usd="2"))

    assert '<dd><span class="money" title="$1.75">$1.75' in html
    assert len(found.rows) == (2 if by in ("day", "hour") else 3)
    assert html.count('data-chart="') == 2 and html.count('<div class="plot" aria-hidden="true">') == 2


async def test_a_tenant_that_spent_nothing_has_a_page():
    _, html = await page_of(Asked(), None)

    assert "Nothing was spent" in html and "Budgets" in html


async def test_a_bar_leads_to_the_jobs_it_is_of():
    found, html = await page_of(Asked(by="day", agent="our support"), row({}, "2"))
    address = found.jobs(found.rows[0])
    searched = parse('since:2026-05-01 until:2026-05-02T00:00 agent:"our support" sort:dearest', now=NOW)

    assert address == "/jobs?s=since%3A2026-05-01+until%3A2026-05-02T00%3A00+agent%3A%22our+support%22+sort%3Adearest"
    assert address.replace("&", "&amp;") in html
    assert searched.problems == () and searched.parameters["until"] == "2026-05-02T00:00:00+00:00"
    assert found.jobs({"group": {"key": "k1"}}, "key") is found.jobs({"group": {"agent": "-"}}, "agent") is None
    assert found.jobs({"group": {"job": "j1"}}, "job") == "/jobs/j1"


async def test_a_budgets_parts_fill_its_bar_and_no_more():
    _, html = await page_of(Asked(), None)

    assert used_of(BUDGET) == {"spent_usd": 600, "reserved_usd": 300, "unsettled_usd": 100}
    assert "50 % reached" in html and re.search(r"waiting:budget\">4 jobs", html)


async def test_conditions_reach_the_api_and_stay_in_the_address():
    asked = Asked(by="tool", days=1, agent="a&b", user_id="ann")
    api = Api(None)
    await read(api, asked, now=NOW, zone="Europe/Zurich")  # pyright: ignore[reportArgumentType]

    assert [one["group_by"] for one in api.asked] == ["tool", "hour", "tier", "cache_break"]
    assert {(one["agent"], one["user_id"], one["tz"]) for one in api.asked} == {("a&b", "ann", "Europe/Zurich")}
    assert asked.address("/costs.csv") == "/costs.csv?by=tool&days=1&agent=a%26b&user_id=ann"


def test_a_budgets_form_saves_what_it_shows():
    body = Draft.of(BUDGET).body()

    assert Draft.of(BUDGET).alerts == "50 82.5"
    assert body == {**{name: BUDGET[name] for name in ("limit_usd", "window", "timezone", "hard", "alerts")}}


def test_alerts_that_are_no_percents_are_refused():
    with pytest.raises(NotANumber, match="percents"):
        Draft(alerts="half").body()
