"""The form of an approval: what is sent back unchanged is what the job asked, and strangers' words do nothing in it."""

from __future__ import annotations

import html
import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pytest

from wayline.console.pages.approvals import Approvals, decision_of
from wayline.console.pages.frame import Frame
from wayline.console.render.environment import Templates

ME = {"tenant": "acme", "name": "ann", "scopes": ["read", "approve"], "open": False, "version": "1"}
FRAME = Frame("Approvals", "/approvals", ME, "token", "system", "/approvals", now=datetime(2026, 5, 1, tzinfo=UTC))
WAIT: dict[str, Any] = {
    **{"job_id": "j1", "agent": "helper", "why": "approval", "id": "a1", "tool": "send_mail", "arguments": {}},
    **{"reason": "", "input_schema": None, "asked_at": None, "cause": "agent", "hash": "h", "effect": "once"},
    **{"description": "", "program": None, "given": None, "user_id": None, "session_id": None, "input": None},
    **{"expires_at": None, "decide": "/v1/jobs/j1/approvals/a1"},
}
PAYLOAD = '"><img src=x onerror=alert(1)><script>alert(2)</script></textarea>\u202e'


def form_of(**fields: Any) -> str:
    page = Approvals([{**WAIT, **fields}], None)
    return Templates().render("approvals.html", page=page, frame=FRAME).decode()


def sent(form: str, name: str) -> str:
    """What a browser sends of a text area that nobody touched."""
    found = re.search(rf'<textarea[^>]* name="{name}"[^>]*>(.*?)</textarea>', form, re.DOTALL)
    return html.unescape(found[1]).replace("\n", "\r\n").strip() if found else ""


def approved(form: str) -> dict[str, Any]:
    return decision_of(
        decision="approve", arguments=sent(form, "arguments"), shown=sent(form, "shown"), reason="", call_hash="h"
    )


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "\u05e9\u05dc\u05d5\u05dd\u200f!",
        "\u202eliam",
        "a\x7fb\x85c",
        "line\nline\t\x00",
        "x" * 60_000,
        "\ud800",
    ],
    ids=["plain", "direction mark", "override", "control", "lines", "long", "half a character"],
)
def test_an_untouched_form_approves_the_call_as_it_was_asked(text: str):
    form = form_of(arguments={"body": text, "amount": 12345678901234567890})

    assert approved(form) == {"decision": "approve", "hash": "h"}
    assert json.loads(sent(form, "arguments"))["body"] == text
    assert "\u202e" not in form and "\u200f" not in form


def test_a_servers_question_is_answered_by_its_schema():
    form = form_of(why="input", cause=None, reason="Which account?", input_schema={"required": ["account"]})

    assert "Which account?" in form and "&#34;account&#34;" in form
    assert approved(form) == {"decision": "approve", "hash": "h", "arguments": {}}


def test_each_form_is_known_again_when_the_page_is_read_anew():
    page = Approvals([{**WAIT, "id": "a1"}, {**WAIT, "id": "a2"}], None)
    shown = Templates().render("approvals.html", page=page, frame=FRAME).decode()

    assert re.findall(r'<article class="card approval" id="([^"]+)"', shown) == ["wait-j1-a1", "wait-j1-a2"]


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.handlers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


@pytest.mark.parametrize("why", ["approval", "input", "needs_decision"])
def test_strangers_words_change_no_form_of_an_approval(why: str):
    plain = {"why": why, "input_schema": {}, "cause": None}
    words = dict.fromkeys(
        ("tool", "agent", "reason", "description", "input", "user_id", "hash", "id", "job_id"), "said"
    )
    hostile = dict.fromkeys(words, PAYLOAD)
    expected = _Tags(form_of(**plain, **words, arguments={"a": "said"}))
    found = _Tags(form_of(**plain, **hostile, arguments={PAYLOAD: PAYLOAD}))

    assert (found.found, found.handlers) == (expected.found, [])
