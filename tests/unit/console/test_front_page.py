"""Home: what needs a person, with or without what it can do without."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.pages.frame import Frame
from wayline.console.pages.front_page import (
    SERVICES_TEMPLATE,
    TEMPLATE,
    FrontPage,
    Lately,
    ServiceState,
    read,
    read_lately,
    services_of,
)
from wayline.console.render.environment import Templates

NOW = datetime(2026, 5, 1, tzinfo=UTC)
ME = {"tenant": "acme", "name": "ann", "scopes": ["read"], "open": False, "version": "1"}
FRAME = Frame("Home", "/", ME, "token", "system", "/", now=NOW)
OVERVIEW = {"open": [], "decisions": 2, "decisions_oldest_at": None, "spent": [], "budgets": [], "dead_letters": 3}
ANSWERS: dict[str, Any] = {
    "/v1/overview": OVERVIEW,
    "/v1/jobs": {"jobs": []},
    "/health/ready": {"needs": {"bus": "ok", "postgres": "<b>away</b>"}},
    "/v1/costs": {"rows": [{"group": {"day": "2026-04-30"}, "cost_usd": "0.5", "calls": 2}]},
    "/v1/mcp/servers": {"servers": [{"quarantined": 1}, {"quarantined": 0}]},
    "/v1/budgets": {"budgets": [], "job_budget_usd": None},
    "/v1/pauses": {"pauses": [{"kind": "lane", "name": "batch\u202e", "since": "2026-04-30T22:00:00Z"}]},
}


def shown(page: FrontPage, lately: Lately, frame: Frame = FRAME) -> str:
    """Return Home's parts as HTML."""
    parts = (("first", page), ("lately", lately))
    return b"".join(Templates().region(TEMPLATE, name, page=one, frame=frame) for name, one in parts).decode()


class Api:
    """Answers, or refuses what a key may not read."""

    def __init__(self, *refused: str) -> None:
        self.refused = refused
        self.answers = ANSWERS

    async def get(self, path: str, **_: Any) -> Any:
        if path in self.refused:
            raise ApiError("not with this key", code="forbidden", status=403)
        return self.answers[path]


@pytest.mark.parametrize("refused", [(), ("/health/ready", "/v1/costs", "/v1/mcp/servers", "/v1/pauses")])
async def test_home_shows_what_needs_a_person(refused: tuple[str, ...]):
    api = cast(Client, Api(*refused))
    page, lately = await read(api, "http://127.0.0.1:8080"), await read_lately(api, now=NOW)
    html = shown(page, lately)
    needs = [(need.number, need.address) for need in page.needs(NOW)]

    paused = "/jobs?s=status:parked+waiting:pause"
    assert ((1, paused) in needs, "pause: lane batch⟦U+202E⟧" in html) == (not refused, not refused)
    assert [need for need in needs if need[1] not in ("/tools/servers", paused)] == [
        (2, "/approvals"),
        (3, "/dead-letters"),
    ]
    assert ((1, "/tools/servers") in needs, "data-chart" in html) == (not refused, not refused)
    assert "<b>away" not in html and "What can you do for me?" in html and "the scope write" in html


async def test_home_says_where_nothing_can_be_read():
    with pytest.raises(ApiError):
        await read(cast(Client, Api("/v1/overview")), "http://127.0.0.1:8080")


async def test_home_of_one_users_key_shows_that_users_jobs():
    page = await read(cast(Client, Api("/v1/overview")), "http://127.0.0.1:8080", of_one_user=True)
    html = shown(page, Lately([], {}), replace(FRAME, me={**ME, "user_id": "ann<"}))

    assert "This key is of the user ann&lt;" in html and "What needs you" not in html and "Open jobs" not in html


def budget(name: str, spent: str, window: str = "month") -> dict[str, Any]:
    """Return a budget of ten dollars."""
    money = {"limit_usd": "10", "spent_usd": spent, "reserved_usd": "1", "unsettled_usd": "0", "left_usd": "2"}
    return {"name": name, "window": window, "agent": None, "user_id": None, "hard": True, "raised": [], **money}


async def test_home_shows_budgets_that_are_not_near_their_limit():
    found = [budget("small<", "1"), budget("large", "7"), budget("each", "0", "job")]
    api = Api()
    api.answers = {**ANSWERS, "/v1/budgets": {"budgets": found}}
    page = await read(cast(Client, api), "http://127.0.0.1:8080")
    html = shown(page, Lately([], {}))

    assert [one["name"] for one in page.budgets] == ["large", "small<"]
    assert "$7.00 spent and $1.00 held of $10.00" in html and "small&lt;" in html and "each job" not in html


def test_home_shows_each_service_by_its_processes():
    one = {"service": "executor", "version": "1", "needs": {"bus": "ok"}, "ready": True, "in_hand": 3}
    other = {**one, "version": "2", "needs": {"bus": "<away>"}, "ready": False, "drained_at": None}
    states = services_of([{**one, "drained_at": None}, other], ["tool_registry"])
    html = Templates().render(SERVICES_TEMPLATE, services=states, frame=FRAME).decode()

    assert states == [
        ServiceState("tool_registry", 0, 0, 0, [], []),
        ServiceState("executor", 1, 2, 6, ["1", "2"], ["bus: <away>"]),
    ]
    assert "1 of 2" in html and "bus: &lt;away&gt;" in html and "no process answers" in html


@pytest.mark.parametrize(("scopes", "asked"), [(["read"], False), (["read", "operator"], True)])
def test_services_are_asked_for_with_an_operators_key(scopes: list[str], asked: bool):
    html = shown(FrontPage(OVERVIEW, [], ""), Lately([], {}), replace(FRAME, me={**ME, "scopes": scopes}))

    assert ('data-later="/home/services"' in html) is asked
