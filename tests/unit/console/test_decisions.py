"""Forms that decide about calls, against an API that is told in the test: what they send, and what stays in them."""

from __future__ import annotations

import re
from typing import Any, cast

import pytest

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.pages import approvals
from wayline.console.pages.approvals import CHOSEN_MAX
from wayline.console.pages.job import waits_of

from .test_requests import Api, browser_of, signed_in


def wait_of(number: int) -> dict[str, Any]:
    return {
        **{"job_id": f"j{number}", "agent": "helper", "why": "approval", "id": "a1", "tool": "send_mail"},
        **{"arguments": {"to": "ann"}, "reason": "", "input_schema": None, "asked_at": None, "cause": "agent"},
        **{"hash": "h", "effect": "once", "description": "", "user_id": None, "input": None, "expires_at": None},
    }


def two_pages(cursor: str | None = None, **_: Any) -> dict[str, Any]:
    if cursor is None:
        return {"approvals": [wait_of(1)], "next_cursor": "2"}
    return {"approvals": [wait_of(2)], "next_cursor": None if cursor == "3" else "3"}


@pytest.mark.parametrize(
    ("arguments", "decision", "status", "told"),
    [
        ('{"to": "bob",', "approve", 422, "are not JSON"),
        ('{"to": NaN}', "approve", 422, "are not JSON"),
        ('{"to": 1e999}', "approve", 422, "are not JSON"),
        ("[" * 5_000, "approve", 422, "nested too deeply"),
        ('{"to": "bob"}', "review", 200, "What you changed"),
    ],
    ids=["cut", "no number", "too large", "too deep", "shown first"],
)
async def test_edited_arguments_stay_in_their_form(arguments: str, decision: str, status: int, told: str):
    def schema() -> dict[str, Any]:
        return {"definition": {"input_schema": {"properties": {"to": {"type": "string"}}}}}

    api = Api(**{"/v1/approvals": two_pages, "/v1/tools/send_mail": schema})
    sent = {"token": "token", "arguments": arguments, "shown": '{"to": "ann"}', "kind.to": "text", "arg.to": "ann"}
    async with browser_of(signed_in(api)) as http:
        answer = await http.post("/approvals/j2/a1", data={**sent, "decision": decision, "reason": "for bob"})

    own = answer.text.partition('id="wait-j2-a1"')[2]
    shown = re.search(r'<textarea[^>]* name="arguments"[^>]*>\n(.*?)</textarea>', own, re.DOTALL)
    assert answer.status_code == status and told in answer.text and api.changes == []
    assert shown and shown[1].replace("&#34;", '"') == arguments and 'value="for bob"' in answer.text


async def test_fields_of_a_refused_approval_stay_as_they_were_written():
    def schema() -> dict[str, Any]:
        return {
            "definition": {"input_schema": {"properties": {"to": {"type": "string"}, "copies": {"type": "integer"}}}}
        }

    api = Api(**{"/v1/approvals": two_pages, "/v1/tools/send_mail": schema})
    sent = {"arguments": '{"to": "ann"}', "shown": '{"to": "ann"}', "kind.to": "text", "kind.copies": "number"}
    async with browser_of(signed_in(api)) as http:
        answer = await http.post(
            "/approvals/j1/a1",
            data={"token": "token", **sent, "arg.to": "bob", "arg.copies": "two", "decision": "approve"},
        )

    assert answer.status_code == 422 and "is not JSON" in answer.text and api.changes == []
    assert 'name="arg.to" value="bob"' in answer.text and 'name="arg.copies" value="two"' in answer.text


@pytest.mark.parametrize("address", ["/approvals/j1/a1", "/approvals/several"])
async def test_a_form_that_does_not_decide_approves_nothing(address: str):
    api = Api(**{"/v1/approvals": two_pages, "/v1/tools/send_mail": {"definition": {"input_schema": {}}}})
    sent = {"token": "token", "wait": "j1/a1/h", "arguments": '{"to": "ann"}', "shown": '{"to": "ann"}'}
    async with browser_of(signed_in(api)) as http:
        await http.post(address, data={**sent, "reason": "never"})

    assert api.changes == []


async def test_more_calls_than_are_decided_at_once_are_not_passed_over():
    api = Api(**{"/v1/approvals": two_pages, "/v1/tools/send_mail": {"definition": {"input_schema": {}}}})
    chosen = [f"j{number}/a1/h" for number in range(CHOSEN_MAX + 1)]
    async with browser_of(signed_in(api)) as http:
        answer = await http.post("/approvals/several", data={"token": "token", "decision": "approve", "wait": chosen})

    assert answer.status_code == 422 and "choose at most 50 at once" in answer.text and api.changes == []


async def test_several_decisions_that_are_refused_keep_their_reason_and_choice():
    api = Api(**{"/v1/approvals": {"approvals": [wait_of(1), wait_of(2)], "next_cursor": None}})
    api.answers["/v1/tools/send_mail"] = {"definition": {"input_schema": {}}}
    api.refusal = ApiError("another call is asked by now", code="decided", status=409)
    sent = {"token": "token", "decision": "deny", "reason": "too dear", "wait": ["j2/a1/h"]}
    async with browser_of(signed_in(api)) as http:
        answer = await http.post("/approvals/several", data=sent)

    assert answer.status_code == 422 and "j2: another call is asked by now" in answer.text
    assert 'name="reason" maxlength="2000" value="too dear"' in answer.text
    assert re.findall(r'name="wait" value="([^"]+)" checked', answer.text) == ["j2/a1/h"]


async def test_of_more_that_wait_than_are_read_the_oldest_are_shown(monkeypatch: pytest.MonkeyPatch):
    def waiting(sort: str = "newest", **_: Any) -> dict[str, Any]:
        return {"approvals": [wait_of(1 if sort == "oldest" else 2)], "next_cursor": "more"}

    monkeypatch.setattr(approvals, "WAITS_MAX", 1)
    api = Api(**{"/v1/approvals": waiting, "/v1/tools/send_mail": {"definition": {"input_schema": {}}}})
    async with browser_of(signed_in(api)) as http:
        page = await http.get("/approvals")

    assert 'id="wait-j1-a1"' in page.text and 'id="wait-j2-a1"' not in page.text


async def test_a_job_asks_for_what_it_waits_for_alone():
    def waiting(job_id: list[str], **_: Any) -> dict[str, Any]:
        return {"approvals": [wait_of(1)] if job_id == ["j1"] else [], "next_cursor": None}

    api = Api(**{"/v1/approvals": waiting})
    found = [await waits_of(cast(Client, api), job_id) for job_id in ("j1", "j9")]

    assert [[wait["job_id"] for wait in waits] for waits in found] == [["j1"], []] and len(api.sent) == 2
