"""Versions, trials and uses of an agent: what they show of the API's answers, and strangers' words in them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from wayline.console.pages.agents import agent_trial, agent_uses, agent_versions
from wayline.console.pages.agents.agent_trial import Trial, submission
from wayline.console.pages.agents.agent_uses import AgentUses
from wayline.console.pages.agents.agent_versions import VersionFigures, VersionsPage, figures_of
from wayline.console.pages.agents.differences import LINES_MAX, differences
from wayline.console.pages.frame import Frame
from wayline.console.render.environment import Templates

NOW = datetime(2026, 5, 1, tzinfo=UTC)
AT = "2026-04-30T00:00:00Z"
PAYLOAD = '"><img src=x onerror=alert(1)><script>alert(2)</script>\u202e'


def html_of(template: str, page: Any, *scopes: str) -> str:
    me = {"tenant": "acme", "name": "ann", "scopes": ["read", *scopes], "open": False, "version": "1"}
    frame = Frame("helper", "/agents", me, "token", "system", "/agents/helper", now=NOW)
    return Templates().render(template, page=page, frame=frame).decode()


def versions_page(**more: Any) -> VersionsPage:
    saved = {"saved_at": AT, "saved_by": PAYLOAD, "retired_at": None, "changed": ["instructions"]}
    given: dict[str, Any] = {
        **{"name": "helper", "version": 2, "next_cursor": None, "left": 1, "right": 2},
        "versions": [{**saved, "version": 2, "labels": ["candidate"]}, {**saved, "version": 1, "labels": []}],
        "figures": {2: VersionFigures(3, 1)},
        "costs": {"2": {"cost_usd": "1.25"}},
        "found": differences({"instructions": PAYLOAD, "style": None}, {"instructions": "Kind.", "style": "direct"}),
    }
    return VersionsPage(**given | more)


def test_versions_have_labels_figures_and_costs_and_do_nothing_else():
    html = html_of(agent_versions.TEMPLATE, versions_page(), "admin")

    assert "candidate" in html and "$1.25" in html and "Return to version 1" in html
    assert "<img" not in html and "\u202e" not in html


def test_a_key_that_may_only_read_returns_to_no_version():
    html = html_of(agent_versions.TEMPLATE, versions_page(costs=None))

    assert html.count("Your key lacks the scope admin.") == 3 and "$" not in html


def test_a_deleted_agent_can_be_brought_back():
    html = html_of(agent_versions.TEMPLATE, versions_page(version=None), "admin")

    assert "is deleted: new jobs are refused" in html and "Return to version" not in html


def test_jobs_are_counted_by_the_version_that_they_began_with():
    jobs = [(2, "completed"), (2, "failed"), (1, "completed"), (None, "failed")]
    found = figures_of({"agent_version": version, "status": status} for version, status in jobs)

    assert found == {2: VersionFigures(2, 1), 1: VersionFigures(1, 0)}


def test_a_long_difference_is_cut_and_says_so():
    long = "\n".join(map(str, range(LINES_MAX * 2)))
    [found] = differences({"instructions": "x\ny"}, {"instructions": long})

    assert len(found.lines) == LINES_MAX + 1 and "more lines" in found.lines[-1].text


@pytest.mark.parametrize(("status", "runs"), [("running", True), ("completed", False)])
def test_a_trial_is_read_anew_until_it_has_ended(status: str, runs: bool):
    job = {
        **{"job_id": "j1", "agent": "helper", "agent_version": 2, "status": status, "route": None, "steps": 1},
        **{"usage": {"input": 1, "output": 1}, "total_cost_usd": "0.01", "input": PAYLOAD, "error": None},
        "answer": PAYLOAD if status == "completed" else None,
    }
    html = html_of(agent_trial.TEMPLATE, Trial("helper", 2, [("label:a", "version 1, a")], [job]), "write")

    assert ("hx-get=" in html) is runs
    assert "<img" not in html and "<script>" not in html.partition("<main")[2]


def test_a_label_is_asked_for_and_another_agent_is_named():
    assert submission("helper", "label:old", "Hi") == {
        **{"agent": "helper", "input": "Hi"},
        "options": {"agent_label": "old"},
    }
    assert submission("helper", "critic", "Hi") == {"agent": "critic", "input": "Hi"}


def test_uses_say_what_a_key_may_not_see():
    latest = {
        **{"status": "failed", "job_id": "j1", "accepted_at": AT},
        "metadata": {"steps": 1, "tokens": 9, "cost_usd": None},
        "outcome": {"answer": None, "error": {"message": PAYLOAD}},
    }
    page = AgentUses("helper", 2, True, None, ["boss"], [], PAYLOAD, latest)
    html = html_of(agent_uses.TEMPLATE, page)

    assert "this key may not see them" in html and 'href="/agents/boss"' in html
    assert "<img" not in html and "unknown" in html
