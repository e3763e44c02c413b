"""The pages of dead letters, as the API's answers make them: counts, progress, and messages of strangers."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pytest

from wayline.console.pages.dead_letters import LISTS, Cause, DeadLetters, in_lines
from wayline.console.pages.frame import Frame
from wayline.console.pages.redrive_plan import Plan
from wayline.console.render.environment import Templates

AT = "2026-05-01T10:00:00Z"
PRINT = "5f2a9c01d7e84b36"
PAYLOAD = '"><img src=x onerror=alert(1)><script>alert(2)</script></pre>\u202e\x1b[2J'
GROUP: dict[str, Any] = {
    **{"fingerprint": PRINT, "code": "tool_failed", "message": "the bank is closed", "jobs": 3, "letters": 1},
    **{"example": "j1", "first_at": AT, "last_at": AT},
}
LETTER: dict[str, Any] = {
    **{"sequence": 7, "at": AT, "code": "invalid_message", "reason": "agent: Field required", "stream": "SUBMIT"},
    **{"consumer": "router", "subject": "jobs.submit.acme", "deliveries": 1, "bytes": 14, "fingerprint": PRINT},
    **{"headers": {"Wayline-Tenant": "acme"}, "text": '{"input": "x"}', "base64": None, "truncated": False},
}
PAST: dict[str, Any] = {
    **{"redrive_id": "r1", "fingerprint": PRINT, "redriven_by": "ann", "jobs": 4, "forked": 3, "already": 1},
    **{"refused": 0, "begun_at": AT, "finished_at": AT},
}
DISMISSED: dict[str, Any] = {
    **{"sequence": 6, "code": "invalid_message", "subject": "jobs.submit.acme", "letter_reason": "agent: missing"},
    **{"reason": "a typo", "dismissed_by": "ann", "dismissed_at": AT},
}
JOB: dict[str, Any] = {
    **{"job_id": "j1", "agent": "helper", "created_at": AT, "steps": 2, "total_cost_usd": "0.01", "input": "Pay."},
    **{"error": {"message": "the bank is closed"}, "status": "failed", "ended_at": AT},
}
ROWS = {"": GROUP, "letters": LETTER, "redrives": PAST, "dismissed": DISMISSED}


def frame_of(*scopes: str) -> Frame:
    me = {"tenant": "acme", "name": "ann", "scopes": list(scopes), "open": False, "version": "1"}
    return Frame("Dead letters", "/dead-letters", me, "token", "system", "/", now=datetime(2026, 5, 1, 12, tzinfo=UTC))


def list_of(view: str, *rows: dict[str, Any], scopes: tuple[str, ...] = ("admin",)) -> str:
    page = DeadLetters(view, list(rows))
    return Templates().render("dead_letters/list.html", page=page, scope="admin", frame=frame_of(*scopes)).decode()


def cause_of(*, scopes: tuple[str, ...] = ("read", "admin"), **fields: Any) -> str:
    given = {"group": GROUP, "job": JOB, "letter": LETTER, "letters": [LETTER], "past": [PAST], **fields}
    values = {"scope": "admin", "default_limit": 100, "most": 1_000, "in_lines": in_lines}
    page = Cause(PRINT, **given)
    return Templates().render("dead_letters/cause.html", page=page, frame=frame_of(*scopes), **values).decode()


def test_a_cause_shows_its_counts_age_and_example():
    shown = cause_of()

    assert "the bank is closed" in shown and f"/jobs?s=fingerprint:{PRINT}" in shown
    assert re.search(r"<time[^>]*>2 h</time> ago", shown)
    assert "&#34;input&#34;: &#34;x&#34;" in shown and "Wayline-Tenant" in shown
    assert 'name="newest" value="7"' in shown


def test_only_a_dry_run_offers_what_it_found():
    jobs = [
        {"job_id": "j1", "fork_id": "f1", "after": 4, "outcome": "forked", "reason": ""},
        {"job_id": "j2", "fork_id": "f2", "after": None, "outcome": "already", "reason": ""},
        {"job_id": "j3", "fork_id": None, "after": None, "outcome": "refused", "reason": "its log is gone"},
    ]
    fork = {**JOB, "job_id": "f2", "status": "running", "ended_at": None}
    planned = cause_of(plan=Plan(jobs, [], True, 100, {"f2": fork}))

    assert "Redrive 1" in planned and "there are more behind them" in planned
    assert "refused: its log is gone" in planned and "would go on after event 4" in planned
    assert re.search(r"go on already\s+1 is <span class=\"status status-running\">", planned)
    assert f'data-live="/dead-letters/causes/{PRINT}/live?plan=100"' in planned
    assert f'action="/dead-letters/causes/{PRINT}/redrive"' not in cause_of() and "data-live" not in cause_of()


def test_jobs_that_go_on_unread_are_counted():
    jobs = [{"job_id": f"j{n}", "fork_id": f"f{n}", "after": None, "outcome": "already", "reason": ""} for n in (1, 2)]

    assert Plan(jobs, [], False, 100, {"f1": {**JOB, "status": "completed"}}).not_read == 1


def test_a_cause_of_which_nothing_is_left_says_so():
    shown = cause_of(group=None, job=None, letter=None, letters=[])

    assert "Nothing is left of it" in shown and "Redrives of this cause" in shown


@pytest.mark.parametrize("view", LISTS)
def test_an_empty_list_says_why_it_is_empty(view: str):
    assert 'class="empty"' in list_of(view)
    assert 'class="empty"' not in list_of(view, ROWS[view])


@pytest.mark.parametrize("view", LISTS)
def test_a_key_without_the_scope_is_told_which_it_lacks(view: str):
    assert "the scope admin" in list_of(view, scopes=("read",))


def test_what_a_key_may_not_do_is_disabled():
    shown = cause_of(scopes=("read",), plan=Plan([], [{**LETTER, "outcome": "resubmitted", "job_id": "j"}], False, 9))

    assert shown.count('disabled title="Your key lacks the scope admin."') == 3


@pytest.mark.parametrize(
    ("letter", "body"),
    [
        ({"text": '{"a":1}'}, '{\n  "a": 1\n}'),
        ({"text": "{a"}, "{a"),
        ({"text": "[" * 60_000}, "[" * 60_000),
        ({"text": None, "base64": "AAE="}, "AAE="),
    ],
    ids=["JSON", "text", "deep", "bytes"],
)
def test_a_body_is_shown_as_what_it_is(letter: dict[str, Any], body: str):
    assert in_lines({**LETTER, **letter}) == body


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.handlers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def said(row: dict[str, Any], words: str) -> dict[str, Any]:
    return {
        name: words if isinstance(value, str) and not name.endswith("_at") else value for name, value in row.items()
    }


@pytest.mark.parametrize("view", LISTS)
def test_strangers_words_change_no_list(view: str):
    keep = {"at": AT, "fingerprint": PRINT}
    plain, hostile = (list_of(view, {**said(ROWS[view], words), **keep}) for words in ("said", PAYLOAD))

    assert (_Tags(hostile).found, _Tags(hostile).handlers) == (_Tags(plain).found, [])
    assert "\u202e" not in hostile and "\x1b" not in hostile


def test_strangers_words_change_nothing_around_a_cause():
    def shown(words: str) -> str:
        keep = {"at": AT, "fingerprint": PRINT}
        letter = {**said(LETTER, words), **keep, "headers": {words: words}}
        job = {**said(JOB, words), "status": "failed", "error": {"message": words}, "total_cost_usd": None}
        jobs = [{"job_id": words, "fork_id": words, "after": 1, "outcome": "refused", "reason": words}]
        plan = Plan(jobs, [{**letter, "outcome": "refused", "job_id": words}], False, 1)
        return cause_of(group={**said(GROUP, words), **keep}, job=job, letter=letter, letters=[letter], plan=plan)

    found = _Tags(shown(PAYLOAD))
    assert (found.found, found.handlers) == (_Tags(shown("said")).found, [])
    assert "\u202e" not in shown(PAYLOAD) and "\x1b" not in shown(PAYLOAD)
