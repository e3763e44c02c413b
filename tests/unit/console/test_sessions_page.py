"""Sessions: the list, one of them, and the job that goes on with it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from wayline.console.pages.frame import Frame
from wayline.console.pages.sessions import LIST_TEMPLATE, TEMPLATE, WHEN_BUSY, SessionPage, Sessions, submission_of
from wayline.console.render.environment import Templates
from wayline.contracts.jobs import JobView, Status
from wayline.contracts.sessions import Session
from wayline.gateway.handlers.jobs.sessions import SessionView

ME = {"tenant": "acme", "name": "ann", "scopes": ["read"], "open": False, "version": "1", "user_id": None}
NOW = datetime(2026, 5, 1, tzinfo=UTC)
FRAME = Frame("Session", "/sessions", ME, "token", "system", "/sessions", now=NOW)
PAYLOAD = '"><script>alert(1)</script><svg onload=alert(2)>\u202e'


def session_of(**fields: Any) -> dict[str, Any]:
    usual = {"session_id": "s/1", "agent": "helper", "turns": 2, "created_at": NOW, "updated_at": NOW, "page": ()}
    more = {"context": {}, "cost_usd": None, "cache_read_share": None, "busy_with": None, "next_cursor": None}
    return SessionView.model_validate({**usual, **more, **fields}).model_dump(mode="json")


def turn_of(number: int, **fields: Any) -> dict[str, Any]:
    job = JobView(**{"job_id": f"j{number}", "agent": "helper", "status": "completed", **fields})
    return {"number": number, "after": None, "job": job}


def page_of(session: dict[str, Any], **more: Any) -> str:
    page = SessionPage(session, **more)
    return Templates().render(TEMPLATE, page=page, frame=FRAME, when_busy=WHEN_BUSY).decode()


def test_the_list_leads_to_each_session_and_keeps_its_conditions():
    found = Session(session_id="s/1", agent="helper", turns=1, created_at=NOW, updated_at=NOW).model_dump(mode="json")
    page = Sessions([found], "c2", agent="a b")
    html = Templates().render(LIST_TEMPLATE, page=page, frame=FRAME).decode()
    empty = Templates().render(LIST_TEMPLATE, page=Sessions([], None), frame=FRAME).decode()

    assert 'href="/sessions/one?id=s/1"' in html and "/sessions?agent=a+b&amp;cursor=c2" in html
    assert "No sessions yet" in empty


@pytest.mark.parametrize("status", list(Status))
def test_a_turn_of_each_status_shows_itself(status: Status):
    html = page_of(session_of(page=(turn_of(1, status=status),)))

    assert f"status-{status}" in html and 'href="/jobs/j1"' in html


def test_cost_and_cached_share_are_those_of_the_api():
    known = page_of(session_of(cost_usd="0.0123", cache_read_share=0.456))
    unknown = page_of(session_of())

    assert "$0.0123" in known and "46 %" in known and 'width="456"' in known
    assert "unknown" in unknown and "no input yet" in unknown


def test_a_busy_session_is_steered_or_interrupted():
    busy = page_of(session_of(busy_with="j7"))
    idle = page_of(session_of())

    assert 'value="steer" checked' in busy and 'value="interrupt"' in busy and 'href="/jobs/j7"' in busy
    assert "when_busy" not in idle


def test_the_next_job_is_of_the_sessions_agent_and_user():
    body = submission_of(session_of(user_id="ann"), text="And back?", when_busy="steer")

    assert body == {
        "agent": "helper",
        "input": "And back?",
        "session_id": "s/1",
        "user_id": "ann",
        "options": {"when_busy": "steer"},
    }


def test_what_a_session_is_about_stands_by_type_newest_first():
    entities = [{"type": "order", "id": name, "name": name, "tool": "t"} for name in ("old", "new")]
    html = page_of(session_of(context={"entities": entities, "tools_used": ["first", "last"]}))

    assert html.index(">new") < html.index(">old") and "last, first" in html


def test_a_key_that_only_reads_goes_on_with_nothing():
    assert page_of(session_of()).count("Your key lacks the scope write.") == 2


def test_strangers_words_in_a_session_stay_words():
    entities = [{"type": "order", "id": "x", "name": PAYLOAD, "tool": PAYLOAD, "untrusted": True}]
    said = {"input": PAYLOAD, "answer": PAYLOAD, "error": {"code": "x", "message": PAYLOAD}, "agent": PAYLOAD}
    found = session_of(
        session_id=PAYLOAD,
        user_id=PAYLOAD,
        page=(turn_of(1, **said),),
        context={"entities": entities, "tools_used": [PAYLOAD]},
    )
    html = page_of(found, problem=PAYLOAD)

    assert "<script>alert" not in html and "<svg onload" not in html and "\u202e" not in html
