"""Views of a job: which events are shown, what each call of the model was told, and what a fork changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from starlette.datastructures import FormData

from wayline.client.client import Client
from wayline.console.pages.event_filter import EventFilter
from wayline.console.pages.frame import Frame
from wayline.console.pages.job import CALLS_FIRST, CALLS_SHOWN, TEMPLATE, VIEWS, JobPage
from wayline.console.pages.job_fork import BESIDE_TEMPLATE, FIELDS, Beside, Fork, NotAnObject, body_of, read
from wayline.console.pages.job_fork import TEMPLATE as FORK_TEMPLATE
from wayline.console.render.diffs.card import of_versions
from wayline.console.render.environment import Templates
from wayline.console.render.prompt_context import model_calls
from wayline.console.render.steps import Step, ToolCall, newest_of
from wayline.console.render.waterfall import waterfall
from wayline.contracts.jobs import JobView, Status

ME = {"tenant": "acme", "name": "ann", "scopes": ["read", "write"], "open": False, "version": "1"}
FRAME = Frame("j1", "/jobs", ME, "token", "system", "/jobs/j1", now=datetime(2026, 5, 1, tzinfo=UTC))
AT = "2026-05-01T10:00:00Z"
PAYLOAD = "<script>alert(1)</script>"


def segment(part: str, hash: str, tokens: int) -> dict[str, Any]:
    return {"part": part, "hash": hash, "count": 1, "tokens": tokens}


def asked(seq: int, attempt_id: str, system: str, **more: Any) -> dict[str, Any]:
    prefix = [segment("tools", "t", 100), segment("system", system, 40), segment("messages", str(seq), 60)]
    whose = {"step": seq, "attempt": 1, "attempt_id": attempt_id, "provider": "chat", "model": "small"}
    return {"seq": seq, "at": AT, "type": "model.requested", "prefix": prefix, **whose, **more}


CALLS = [{"call": "1", "tool": "refund", "arguments": {"amount": 7}}]
MESSAGE = {"text": "I look.", "tool_calls": CALLS, "thinking": ""}
USAGE = {"input": 190, "output": 4, "cache_read": 120}
EVENTS: list[dict[str, Any]] = [
    asked(1, "m1", "s1"),
    {
        **{"seq": 2, "at": AT, "type": "model.completed", "step": 1, "attempt_id": "m1", "message": MESSAGE},
        **{"usage": USAGE, "cost_usd": "0.01", "saved_usd": "0.002", "notes": ["no temperature"]},
    },
    {
        **{"seq": 3, "at": AT, "type": "tool.completed", "step": 1, "call": "1", "tool": "refund", "status": "failed"},
        **{"content": PAYLOAD, "error": {"code": "refused", "message": "The Bank refused"}, "duration_ms": 3},
    },
    asked(4, "m2", "s2", cache_break="system_changed"),
    {"seq": 5, "at": AT, "type": "model.failed", "attempt_id": "m2", "error": {"message": "away"}, "usage": None},
]


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        (EventFilter(), [1, 2, 3, 4, 5]),
        (EventFilter(kind="model.requested"), [1, 4]),
        (EventFilter(tool="refund"), [3]),
        (EventFilter(failed=True), [3, 5]),
        (EventFilter(words="the bank"), [3]),
        (EventFilter(words="bank", kind="model.failed"), []),
    ],
)
def test_events_are_shown_by_kind_tool_words_and_failure(only: EventFilter, expected: list[int]):
    assert [event["seq"] for event in EVENTS if only.meets(event)] == expected


def test_conditions_of_events_stand_in_the_address():
    assert EventFilter(kind="a.b", words="x&y", failed=True).query == "kind=a.b&words=x%26y&failed=1"


def test_each_call_of_the_model_shows_what_it_was_told():
    first, second = model_calls(EVENTS)

    assert (first.estimated, first.usage, first.notes) == (200, USAGE, ("no temperature",))
    assert [part["same"] for part in second.parts] == [True, False, False]
    assert (second.cache_break, second.error, second.usage) == ("system_changed", "away", None)
    assert first.bars(200) == [("tools", 0, 500), ("system", 500, 200), ("messages", 700, 300)]


@pytest.mark.parametrize("view", [name for name, _ in VIEWS if name != "trace"])
def test_every_view_of_a_job_shows_its_log_without_running_it(view: str):
    job = JobView(job_id="j1", agent="helper", status=Status.COMPLETED, answer=PAYLOAD).model_dump(mode="json")
    page = JobPage(job, view, [], EVENTS, None, [])  # pyright: ignore[reportArgumentType]
    html = Templates().render(TEMPLATE, page=page, frame=FRAME, views=VIEWS).decode()

    assert "<script>alert" not in html
    assert ("fork?after=3" in html) is (view == "events")


HUGE_DIFF = "--- a/x\n+++ b/x\n@@ -1,900 +1,900 @@\n" + "-old line of the text\n+new line of the text\n" * 900


@pytest.mark.parametrize("result", ["ok", "<&" * 10_000, HUGE_DIFF], ids=["short", "long", "differences"])
def test_a_job_of_many_calls_is_a_page_below_a_megabyte(result: str):
    steps = [
        Step(
            number, "I look.", calls={"1": ToolCall("search", {"query": "x" * 3_000}, "read", "completed", result, 3.0)}
        )
        for number in range(300)
    ]
    shown, left_out = newest_of(steps, CALLS_SHOWN)
    job = JobView(job_id="j1", agent="helper", status=Status.RUNNING).model_dump(mode="json")
    page = JobPage(job, "conversation", shown, EVENTS, None, [], left_out)
    html = Templates().render(TEMPLATE, page=page, frame=FRAME, views=VIEWS)

    assert len(html) < 1_000_000 and left_out == 100
    assert (page.call_chars < 10_000) and b"100 earlier calls are not shown" in html


@pytest.mark.parametrize(("shown", "offers"), [(CALLS_FIRST, True), (CALLS_SHOWN, False)])
def test_a_job_of_many_calls_offers_more_than_its_newest(shown: int, offers: bool):
    steps = [Step(number, "", calls={"1": ToolCall("search", {}, "read", "completed", "ok")}) for number in range(300)]
    newest, left_out = newest_of(steps, shown)
    job = JobView(job_id="j1", agent="helper", status=Status.RUNNING).model_dump(mode="json")
    page = JobPage(job, "conversation", newest, EVENTS, None, [], left_out, is_long=not offers)
    html = Templates().render(TEMPLATE, page=page, frame=FRAME, views=VIEWS).decode()

    assert f"{300 - shown} earlier calls are not shown" in html
    assert ("view=conversation&amp;more=all" in html) is offers


def test_a_trace_of_many_spans_is_a_page_below_a_megabyte():
    def span(number: int, *children: dict[str, Any]) -> dict[str, Any]:
        timed = {"start": AT, "duration_ms": 3.0, "status": "ok", "usage": USAGE, "cost_usd": "0.0031"}
        return {"name": f"chat {number}", "service": "executor", "attributes": {}, "children": list(children), **timed}

    trace = waterfall(span(0, *(span(number) for number in range(1, 5_000))), now=FRAME.now)
    job = JobView(job_id="j1", agent="helper", status=Status.COMPLETED).model_dump(mode="json")
    html = Templates().render(TEMPLATE, page=JobPage(job, "trace", [], [], trace, []), frame=FRAME, views=VIEWS)

    assert len(html) < 1_000_000 and b"the first 600 spans; the API has the others" in html


def fork_at(seq: int | None) -> Fork:
    event = next((one for one in EVENTS if one["seq"] == seq), None)
    return Fork({"job_id": "j1", "input": "hi"}, seq, event, models=["chat/small"])


def test_a_fork_sends_what_is_different_and_nothing_else():
    arguments = '{"1": {"amount": 7}}'
    same = body_of(FormData({"arguments": arguments, "model": ""}), fork_at(2))
    changed = body_of(FormData({"arguments": '{"1": {"amount": 8}}', "model": "chat/small"}), fork_at(2))
    untouched = body_of(FormData({"result": PAYLOAD}), fork_at(3))
    other = body_of(FormData({"result": "ok", "failed": "on"}), fork_at(3))

    assert same == {"after": 2}
    assert changed == {"after": 2, "model": "chat/small", "arguments": {"1": {"amount": 8}}}
    assert untouched == {"after": 3}
    assert other == {"after": 3, "tool_result": {"content": "ok", "failed": True}}
    assert body_of(FormData({"prompt": "Be short."}), fork_at(None)) == {"prompt": "Be short."}


def test_a_result_that_nobody_touched_is_no_other_result():
    event = {"seq": 3, "type": "tool.completed", "content": "one\ntwo\n", "tool": "search"}
    fork = Fork({"job_id": "j1", "input": ""}, 3, event)

    assert body_of(FormData({"result": "one\r\ntwo"}), fork) == {"after": 3}
    changed = body_of(FormData({"result": "one\r\n2"}), fork)
    assert changed["tool_result"] == {"content": "one\n2", "failed": False}


def test_a_refused_fork_keeps_that_its_call_failed():
    fork = replace(fork_at(3), draft=dict.fromkeys(FIELDS, "") | {"failed": "on"}, problem="no")
    html = Templates().render(FORK_TEMPLATE, page=fork, frame=FRAME).decode()

    assert 'name="failed" value="on" checked' in html


@pytest.mark.parametrize("text", ["{", "[]", "7", "NaN", "[" * 9_000])
def test_arguments_of_a_fork_that_are_no_object_are_refused(text: str):
    with pytest.raises(NotAnObject):
        body_of(FormData({"arguments": text}), fork_at(2))


@pytest.mark.parametrize("seq", [None, 2, 3])
def test_the_form_of_a_fork_shows_what_can_be_changed_there(seq: int | None):
    html = Templates().render(FORK_TEMPLATE, page=fork_at(seq), frame=FRAME).decode()

    assert 'name="model"' in html and "<script>alert" not in html
    assert ('name="arguments"' in html, 'name="result"' in html) == (seq == 2, seq == 3)


def test_a_fork_stands_beside_its_origin_with_what_differs():
    origin, fork = (
        JobView(job_id=name, agent="helper", status=Status.COMPLETED, answer=answer).model_dump(mode="json")
        for name, answer in (("j1", "It takes ten days."), ("j2", f"It takes two days. {PAYLOAD}"))
    )
    page = Beside(origin, fork, [], [], of_versions(origin["answer"], fork["answer"]))
    html = Templates().render(BESIDE_TEMPLATE, page=page, frame=FRAME).decode()

    assert "<mark>ten</mark>" in html and "<script>alert" not in html
    assert 'href="/jobs/j1"' in html and 'href="/jobs/j2"' in html


class Ended:
    """An API with one job that has ended."""

    def __init__(self, status: Status) -> None:
        self._status = status

    async def job(self, job_id: str) -> dict[str, Any]:
        return JobView(job_id=job_id, agent="helper", status=self._status).model_dump(mode="json")

    async def log(self, job_id: str) -> list[dict[str, Any]]:
        return [{"seq": 1, "type": "job.submitted"}]

    async def whole(self, path: str, name: str) -> dict[str, Any]:
        return {name: []}


@pytest.mark.parametrize("status,body", [(Status.COMPLETED, {"after": 1}), (Status.FAILED, {})])
async def test_a_fork_of_a_job_that_did_not_fail_begins_anew(status: Status, body: dict[str, Any]):
    fork = await read(cast(Client, Ended(status)), "j1", None)
    html = Templates().render(FORK_TEMPLATE, page=fork, frame=FRAME).decode()

    assert body_of(FormData(), fork) == body
    assert ("from the beginning" in html) is bool(body)
    assert ("done and paid for once more" in html, "nothing of it is done" in html) == (bool(body), not body)
