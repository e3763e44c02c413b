"""The list of agents, as it is made of what the API answered."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from wayline.client import ApiError
from wayline.console.pages.agents.agent_list import TEMPLATE, read
from wayline.console.pages.frame import Frame
from wayline.console.render.environment import Templates

NOW = datetime(2026, 5, 1, tzinfo=UTC)
ME = {"tenant": "acme", "name": "ann", "scopes": ["read"], "open": False, "version": "1"}
PAYLOAD = "<img src=x onerror=alert(1)>\u202e"


def agent(name: str, **config: Any) -> dict[str, Any]:
    fields = {"description": "", "model": None, "routing": {"primary": None}, **config}
    return {"name": name, "version": 3, "config": fields, "default_model": None}


def job(job_id: str, name: str) -> dict[str, Any]:
    return {"job_id": job_id, "agent": name, "status": "completed", "created_at": "2026-04-30T23:00:00+00:00"}


class Recorded:
    """A client that answers with what was recorded."""

    def __init__(self, agents: list[dict[str, Any]], costs: list[dict[str, Any]] | int) -> None:
        self.agents, self.costs, self.asked = agents, costs, list[str]()

    async def whole(self, path: str, name: str) -> Any:
        return {name: self.agents}

    async def get(self, path: str, *, agent: str = "", **_: Any) -> Any:
        if path == "/v1/costs":
            if isinstance(self.costs, int):
                raise ApiError("costs are of all users", code="forbidden", status=self.costs)
            return {"rows": self.costs}
        if agent:
            self.asked.append(agent)
            return {"jobs": [job("j2", agent)]}
        return {"jobs": [job("j1", "helper")], "facets": {"agent": {"helper": 5, "rare": 1}}}


async def shown(
    agents: list[dict[str, Any]], costs: list[dict[str, Any]] | int = 403, *, scopes: tuple[str, ...] = ("read",)
) -> tuple[str, Recorded]:
    client = Recorded(agents, costs)
    page = await read(client, now=NOW)  # pyright: ignore[reportArgumentType]
    frame = Frame("Agents", "/agents", {**ME, "scopes": scopes}, "token", "system", "/agents", now=NOW)
    return Templates().render(TEMPLATE, page=page, frame=frame).decode(), client


async def test_each_agent_stands_beside_its_jobs_costs_and_last_run():
    spent = [{"group": {"agent": "helper"}, "cost_usd": "1.25"}]
    html, client = await shown([agent("helper"), agent("rare"), agent("idle")], spent)

    assert client.asked == ["rare"]
    assert "$1.25" in html and '<a href="/jobs?s=agent:helper">5</a>' in html
    assert '<a href="/jobs/j1">' in html and '<a href="/jobs/j2">' in html
    assert html.count("none in 30 days") == 1


async def test_costs_that_a_key_may_not_know_are_not_zero():
    html, _ = await shown([agent("helper")])

    assert "$0" not in html and "this key is of one" in html


async def test_a_tenant_without_agents_is_told_what_one_is():
    html, _ = await shown([], [])

    assert "No agents" in html


@pytest.mark.parametrize("field", ["description", "model"])
async def test_strangers_words_of_an_agent_do_nothing(field: str):
    html, _ = await shown([agent("helper", **{field: PAYLOAD})], [])

    assert "<img" not in html and "\u202e" not in html


@pytest.mark.parametrize(("scopes", "said"), [(("read",), True), (("read", "approve"), False)])
async def test_a_page_says_that_its_key_only_reads(scopes: tuple[str, ...], said: bool):
    html, _ = await shown([], [], scopes=scopes)

    assert (">read only<" in html) is said
