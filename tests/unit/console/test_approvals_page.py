"""The form of an approval: what is sent back unchanged is what the job asked, and strangers' words do nothing in it."""

from __future__ import annotations

import html
import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.datastructures import FormData
from starlette.requests import Request

from wayline.client.client import Client
from wayline.console.access.visitor import Visitor
from wayline.console.pages import approvals
from wayline.console.pages.approvals import PAGE_SIZE, Approvals, Review, decide, decision_of, edited, read
from wayline.console.pages.frame import Frame
from wayline.console.render.diffs.card import of_versions
from wayline.console.render.environment import Templates
from wayline.console.render.json_text import editable
from wayline.console.render.schema_fields import NotAValue

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


@pytest.mark.parametrize("cause", ["tool", "agent", "tainted", None])
def test_what_tainted_the_job_is_said_whatever_the_cause(cause: str | None):
    source = {"kind": "tool", "name": "web_fetch", "step": 3, "call": "1", "job_id": None}
    form = form_of(cause=cause, tainted_by=source)

    words = " ".join(re.sub(r"<[^>]*>", "", form).split())
    assert "The first words of strangers that the job read: what web_fetch returned in step 3." in words
    assert "words of strangers that the job read" not in form_of(cause=cause, tainted_by=None)


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


SCHEMA = {
    "properties": {
        "to": {"type": "string", "description": "An address."},
        "amount": {"type": "number"},
        "urgent": {"type": "boolean"},
        "kind": {"enum": ["new", "old"]},
        "lines": {"type": "array"},
    },
    "required": ["to"],
}
VALUES = st.one_of(
    st.text(max_size=8), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none()
)
ARGUMENTS = st.dictionaries(
    st.sampled_from(["to", "amount", "urgent", "kind", "lines", "more"]),
    st.one_of(VALUES, st.lists(VALUES, max_size=2), st.sampled_from(["new", "a\r\nb", "\u202e", "\nx"])),
    max_size=6,
)


def posted(page: Approvals, wait: dict[str, Any], **written: str) -> FormData:
    """What a browser sends of a form, with some fields written anew; it sends the lines of a text with CRLF."""
    fields = {one.name: written.get(one.name, one.value.replace("\n", "\r\n")) for one in page.fields(wait)}
    kinds = {f"kind.{one.name}": one.kind for one in page.fields(wait)}
    whole = editable(wait["arguments"])
    return FormData({"shown": whole, "arguments": whole, **kinds, **{f"arg.{n}": v for n, v in fields.items()}})


@given(arguments=ARGUMENTS)
@settings(max_examples=150, deadline=None)
def test_untouched_fields_approve_the_call_as_it_was_asked(arguments: dict[str, Any]):
    wait = {**WAIT, "arguments": arguments}
    page = Approvals([wait], None, schemas={"send_mail": SCHEMA})

    assert json.loads(edited(posted(page, wait))) == arguments


def test_a_field_that_was_written_changes_its_argument_alone():
    wait = {**WAIT, "arguments": {"to": "ann", "amount": 7, "more": {"a": 1}}}
    page = Approvals([wait], None, schemas={"send_mail": SCHEMA})
    form = posted(page, wait, amount="8.5", urgent="true", kind="", lines="[1]")
    html = Templates().render("approvals.html", page=page, frame=FRAME).decode()

    assert json.loads(edited(form)) == {"to": "ann", "amount": 8.5, "more": {"a": 1}, "urgent": True, "lines": [1]}
    assert 'name="arg.amount" value="7"' in html and "An address." in html


@pytest.mark.parametrize(("name", "text"), [("amount", "many"), ("amount", "true"), ("lines", "[")])
def test_what_is_no_value_of_its_kind_is_refused(name: str, text: str):
    wait = {**WAIT, "arguments": {}}

    with pytest.raises(NotAValue, match=name):
        edited(posted(Approvals([wait], None, schemas={"send_mail": SCHEMA}), wait, **{name: text}))


def test_arguments_that_were_edited_whole_count_before_the_fields():
    wait = {**WAIT, "arguments": {"to": "ann"}}
    form = posted(Approvals([wait], None, schemas={"send_mail": SCHEMA}), wait, to="bob")

    assert edited(FormData({**form, "arguments": '{"to": "cy"}'})) == '{"to": "cy"}'


def test_changes_are_shown_as_a_difference_before_they_are_sent():
    wait = {**WAIT, "arguments": {"to": "ann"}}
    wanted = {"to": PAYLOAD}
    review = Review("j1", "a1", wanted, of_versions(editable(wait["arguments"]), editable(wanted)), "why")
    page = Approvals([wait, {**WAIT, "id": "a2"}], None, schemas={"send_mail": SCHEMA}, review=review)
    html = Templates().render("approvals.html", page=page, frame=FRAME).decode()

    assert html.count("What you changed") == 1 and "<script>alert" not in html
    assert html.count('form="several"') == 2 and 'value="j1/a1/h"' in html


def told(*asked_at: str) -> Client:
    """Return a client of an API where these wait, one on each of its pages."""
    waits = [{**WAIT, "id": f"a{at}", "asked_at": at} for at in asked_at]

    class Api:
        async def approvals(self, *, sort: str, limit: int, cursor: str | None) -> dict[str, Any]:
            place = int(cursor or 0)
            following = str(place + 1) if place + 1 < len(waits) else None
            return {"approvals": waits[place : place + 1], "next_cursor": following}

        async def get(self, path: str) -> dict[str, Any]:
            return {"definition": {"input_schema": {}}}

    return cast(Client, Api())


class Deciding:
    """An API whose list has a decided call for some looks more."""

    def __init__(self, looks: int) -> None:
        self.left = looks
        self.sent: list[str] = []

    async def decide(self, job_id: str, approval_id: str, decision: dict[str, Any]) -> None:
        self.sent.append(f"{job_id}/{approval_id}")

    async def approvals(self, *, job_id: list[str], limit: int) -> dict[str, Any]:
        assert job_id == ["j1"]
        self.left -= 1
        return {"approvals": [WAIT] if self.left >= 0 else [], "next_cursor": None}


async def decided(api: Deciding, *, then: str) -> str:
    """Decide a call by its form, and return where that leads."""
    form = FormData([("decision", "approve"), ("then", then), ("arguments", "{}"), ("shown", "{}")])
    visitor = cast(Visitor, SimpleNamespace(client=api))
    answer = await decide(cast(Request, None), visitor, form, "j1", "a1")
    return answer.headers["location"]


async def test_the_list_is_shown_once_a_decided_call_has_left_it():
    api = Deciding(looks=2)

    assert await decided(api, then="/approvals") == "/approvals?done=decided"
    assert (api.sent, api.left) == (["j1/a1"], -1)


async def test_a_call_that_stays_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(approvals, "TAKEN_EVERY_S", 0)
    api = Deciding(looks=1_000)

    assert await decided(api, then="/approvals") == "/approvals?done=decided"


async def test_a_jobs_page_waits_for_no_list():
    api = Deciding(looks=2)

    assert await decided(api, then="/jobs/j1") == "/jobs/j1?done=decided"
    assert api.left == 2


async def test_what_was_asked_first_stands_first():
    page = await read(told("2026-05-03T00:00Z", "2026-05-01T00:00Z", "2026-05-02T00:00Z"))

    assert [wait["id"] for wait in page.waits] == [f"a2026-05-0{day}T00:00Z" for day in (1, 2, 3)]
    assert page.next_cursor is None


async def test_several_refused_on_the_second_page_show_it_again():
    api = told(*(f"2026-05-01T00:{minute:02}Z" for minute in range(PAGE_SIZE + 2, 0, -1)))
    page = await read(api, str(PAGE_SIZE))
    first, html = (
        Templates().render("approvals.html", page=one, frame=FRAME).decode() for one in (await read(api), page)
    )

    assert f'<input type="hidden" name="cursor" value="{PAGE_SIZE}">' in html and f"T00:{PAGE_SIZE + 2}" in html
    assert 'name="cursor"' not in first and f'href="/approvals?cursor={PAGE_SIZE}"' in first
