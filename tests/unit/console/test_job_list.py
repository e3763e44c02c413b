"""The list of jobs: what is done to many, which columns stand in it, and what its stream says."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from starlette.datastructures import FormData

from wayline.client.client import Client
from wayline.console.pages.frame import Frame
from wayline.console.pages.job_actions import ACTIONS, Actions, NothingChosen, body_of
from wayline.console.pages.job_actions import TEMPLATE as ACTIONS_TEMPLATE
from wayline.console.pages.job_search import parse
from wayline.console.pages.jobs import COLUMNS, SHOWN, SORTS, TEMPLATE, Jobs, news_of
from wayline.console.pages.kept_searches import COOKIE_MAX_BYTES, KeptSearch, written
from wayline.console.pages.kept_searches import read as read_kept
from wayline.console.render.environment import Templates
from wayline.contracts.jobs import JobView, Status

NOW = datetime(2026, 5, 1, tzinfo=UTC)
ME = {"tenant": "acme", "name": "ann", "scopes": ["read", "write"], "open": False, "version": "1"}
FRAME = Frame("Jobs", "/jobs", ME, "token", "system", "/jobs?s=a", now=NOW)
JOB = JobView(job_id="j1", agent="helper", status=Status.RUNNING, input="<b>hi</b>").model_dump(mode="json")


def form(*pairs: tuple[str, str]) -> FormData:
    return FormData(list(pairs))


@pytest.mark.parametrize(
    ("action", "value", "expected"),
    [
        ("cancel", "late", {"action": "cancel", "reason": "late"}),
        ("raise", "$0.50", {"action": "raise", "budget_usd": "0.50"}),
        ("fork", "", {"action": "fork"}),
        ("fork", "chat/small", {"action": "fork", "model": "chat/small"}),
        ("tag", "a b", {"action": "tag", "add_tags": ["a", "b"]}),
        ("untag", "a", {"action": "tag", "remove_tags": ["a"]}),
    ],
)
def test_an_action_is_done_to_the_chosen_jobs(action: str, value: str, expected: dict[str, Any]):
    sent = form(("action", action), ("value", value), ("job", "j1"), ("job", "j2"), ("of", "chosen"))

    assert body_of(sent) == {**expected, "job_ids": ["j1", "j2"]}


def test_an_action_on_all_that_match_sends_the_conditions():
    sent = form(("action", "cancel"), ("value", ""), ("of", "all"), ("s", "late agent:a status:failed sort:dearest"))

    assert body_of(sent)["filter"] == {"q": "late", "agent": ["a"], "status": ["failed"]}


@pytest.mark.parametrize("more", [("of", "chosen"), ("s", "colour:red")])
def test_an_action_on_nothing_or_an_unknown_condition_is_refused(more: tuple[str, str]):
    with pytest.raises(NothingChosen):
        body_of(form(("action", "cancel"), ("of", "all") if more[0] == "s" else more, more))


def test_a_dry_run_is_shown_before_anything_is_done():
    tried = {
        **{"action": "cancel", "state": "done", "counts": {"done": 3, "already": 1, "refused": 2}, "more": True},
        "refused": [{"job_id": "j9", "reason": "<b>ended</b>"}],
    }
    page = Actions([], tried, '{"action": "cancel"}', "/jobs?s=a")
    html = Templates().render(ACTIONS_TEMPLATE, page=page, frame=FRAME).decode()

    assert "<strong>3 or more</strong> jobs" in html and "2 refused" in html and "<b>ended" not in html
    assert 'name="body" value="{&#34;action&#34;: &#34;cancel&#34;}"' in html and 'name="confirmed"' in html


@pytest.mark.parametrize("asked", [{"job_ids": ["j1", "j2"]}, {"filter": {"status": ["failed"], "q": "late"}}, {}])
def test_an_action_shows_how_far_it_is(asked: dict[str, Any]):
    one = {
        **{"action_id": "action_1", "action": "cancel", "state": "running", "counts": {"done": 3}, "refused": []},
        **{"waits_for": None, "asked": asked, "asked_by": "ann", "begun_at": "2026-05-01T00:00:00Z"},
    }
    html = Templates().render(ACTIONS_TEMPLATE, page=Actions([one]), frame=FRAME).decode()

    assert ("2 chosen jobs" in html) is ("job_ids" in asked) and ("late" in html) is ("filter" in asked)
    assert 'action="/jobs/actions/action_1/stop"' in html


def test_a_dry_run_that_finds_nothing_to_do_can_do_nothing():
    tried = {"action": "cancel", "state": "done", "counts": {}, "refused": [], "more": False}
    html = Templates().render(ACTIONS_TEMPLATE, page=Actions([], tried, "{}"), frame=FRAME).decode()

    assert "<strong>0</strong> jobs" in html and "disabled" in html


def listed(page: Jobs, *kept: KeptSearch) -> str:
    values: dict[str, Any] = {"page": page, "frame": FRAME, "sorts": SORTS, "columns": COLUMNS, "actions": ACTIONS}
    return Templates().render(TEMPLATE, kept=kept, **values).decode()


@pytest.mark.parametrize("columns", [SHOWN, COLUMNS, ("cost",)])
def test_the_list_has_the_columns_that_were_chosen(columns: tuple[str, ...]):
    page = Jobs(parse("a", now=NOW), [JOB], {}, None, columns=columns)
    html = listed(page, KeptSearch("<i>late</i>", "status:failed"), KeptSearch("all of a", "a"))

    assert html.count("<th") - html.count("<thead") == len(columns) + 3
    assert 'data-job="j1"' in html and "<b>hi" not in html
    assert 'href="/jobs/export?s=a&amp;format=csv"' in html
    assert '<a class="chip" href="/jobs?s=status%3Afailed" title="status:failed">&lt;i&gt;late' in html
    assert '<a class="chip" href="/jobs?s=a" aria-current="page"' in html
    assert re.search(r'data-news="/jobs/news\?since=[^"&]*&amp;s=a"', html)


@pytest.mark.parametrize("number", [10, 13])
def test_agents_beyond_the_ten_busiest_are_folded(number: int):
    facets = {"jobs": 99, "counted_max": 10_000, "status": {}, "agent": {f"a{n}": 20 - n for n in range(number)}}
    html = listed(Jobs(parse("a", now=NOW), [JOB], facets, None))

    shown, _, folded = html.partition("agents more</summary>")
    assert shown.count("agent%3Aa") == min(number, 10) and folded.count("agent%3Aa") == number - min(number, 10)
    assert ("3 agents more" in html) is (number == 13)
    # A browser ends a paragraph where something is folded, and with it its layout.
    assert '<p class="facets">' not in html


async def test_the_stream_of_the_list_tells_new_jobs_from_changed_ones():
    class Told:
        async def tenant_events(self, **asked: Any) -> AsyncGenerator[dict[str, Any]]:
            yield {"type": "job.submitted", "job_id": "j1"}
            yield {"type": "job.completed", "job_id": "j1"}
            yield {"type": "gap", "after": "1"}

    sent = [one.decode().partition("\n")[0] async for one in news_of(cast(Client, Told()))]

    assert sent == ["event: new", "event: changed", "event: gap"]


async def test_a_new_stream_tells_which_jobs_came_meanwhile():
    class Told:
        def __init__(self) -> None:
            self.goes_on = asyncio.Event()

        async def tenant_events(self, **asked: Any) -> AsyncGenerator[dict[str, Any]]:
            yield {"type": "job.completed", "job_id": "j1"}
            await self.goes_on.wait()
            yield {"type": "job.submitted", "job_id": "j4"}

        async def get(self, path: str, **asked: Any) -> dict[str, Any]:
            assert (path, asked["since"]) == ("/v1/jobs", NOW.isoformat())
            self.goes_on.set()
            return {"jobs": [{"job_id": "j3"}, {"job_id": "j2"}]}

    sent = [one.decode() async for one in news_of(cast(Client, Told()), NOW, look_after_s=0.01)]

    assert [json.loads(one.partition("data: ")[2])["job_id"] for one in sent] == ["j1", "j3", "j2", "j4"]
    assert ["new" in one for one in sent] == [False, True, True, True]


async def test_only_new_jobs_that_meet_the_search_are_told():
    later = (NOW + timedelta(minutes=5)).isoformat()
    looked: list[dict[str, Any]] = []

    class Told:
        def __init__(self) -> None:
            self.goes_on = asyncio.Event()

        async def tenant_events(self, **asked: Any) -> AsyncGenerator[dict[str, Any]]:
            yield {"type": "job.submitted", "job_id": "j1"}
            yield {"type": "job.completed", "job_id": "j2"}
            await self.goes_on.wait()

        async def get(self, path: str, **asked: Any) -> dict[str, Any]:
            looked.append(asked)
            self.goes_on.set()
            return {"jobs": [{"job_id": "j2"}]}

    narrowed = {"status": ["failed"], "since": later}
    sent = [one.decode() async for one in news_of(cast(Client, Told()), NOW, narrowed, look_after_s=0.01)]

    assert [(one.split()[1], json.loads(one.partition("data: ")[2])["job_id"]) for one in sent] == [
        ("changed", "j2"),
        ("new", "j2"),
    ]
    assert [one | {"limit": 0} for one in looked] == [narrowed | {"limit": 0}]


def test_of_kept_searches_the_oldest_go_first():
    kept = [KeptSearch(f"{n} “{'é' * 30}”", f"tag:{'ü' * 400}") for n in range(20)]
    cookie = written(kept)

    assert len(cookie) <= COOKIE_MAX_BYTES and re.fullmatch(r"[\w=-]*", cookie, re.ASCII)
    found = read_kept(cookie)
    assert found and list(found) == kept[-len(found) :]
    assert read_kept(written(kept[:2])) == tuple(kept[:2])


@pytest.mark.parametrize("cookie", ["", "x", "W10", "bnVsbA==", "W1tbW1td", "eyJhIjoxfQ==", "\u00e9", "[" * 90_000])
def test_a_broken_cookie_keeps_no_search(cookie: str):
    assert read_kept(cookie) == ()


@pytest.mark.parametrize(("number", "words"), [(0, "0 jobs:"), (1, "1 job:"), (2, "2 jobs:")])
def test_how_many_jobs_were_found_is_said(number: int, words: str):
    facets = {"jobs": number, "counted_max": 10_000, "status": {"completed": number}, "agent": {}}

    assert words in listed(Jobs(parse("a", now=NOW), [JOB], facets, None))
