"""A job's page at every point of its life: little is known of one that was accepted a moment ago."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from wayline.client import ApiError
from wayline.console.access.visitor import Visitor
from wayline.console.pages.frame import Frame
from wayline.console.pages.job import CALLS_SHOWN, TEMPLATE, VIEWS, JobPage, read
from wayline.console.render.environment import Templates
from wayline.console.render.waterfall import ROWS_FIRST, ROWS_MAX
from wayline.contracts.jobs import JobView, QueuePlace, Status, Waiting
from wayline.contracts.progress import Progress

ME = {"tenant": "acme", "name": "ann", "scopes": ["read"], "open": False, "version": "1"}
FRAME = Frame("j1", "/jobs", ME, "token", "system", "/jobs/j1", now=datetime(2026, 5, 1, tzinfo=UTC))


def page_of(view: str, **fields: Any) -> str:
    job = JobView(job_id="j1", agent="helper", **fields).model_dump(mode="json")
    page = JobPage(job, view, [], [], None, [])  # pyright: ignore[reportArgumentType]
    return Templates().render(TEMPLATE, page=page, frame=FRAME, views=VIEWS).decode()


@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize("view", ["conversation", "events", "raw"])
def test_a_page_needs_nothing_but_an_id_and_a_status(view: str, status: Status):
    html = page_of(view, status=status)

    assert f"status-{status}" in html
    assert ("data-live" in html) is (status in (Status.QUEUED, Status.RUNNING, Status.PARKED))


def test_what_a_parked_job_waits_for_is_said_with_its_form():
    waiting = {"why": "budget", "wait_id": "w1", "question": "the budget 'team' is used up"}
    html = page_of("conversation", status="parked", waiting_for=waiting)

    assert "It waits for its budget" in html
    assert (
        'action="/jobs/j1/budget"' in html and "Beyond what its agent and budgets allow takes the scope admin" in html
    )


def test_a_running_job_says_its_step_and_a_queued_one_waits():
    doing = Progress(state="reasoning", phase="started", iteration=2, of=5, message="Thinking")
    place = QueuePlace(job_id="j1", lane="batch", position=3, queued=12)
    html = page_of("conversation", status="running", progress=doing)

    assert '<span data-progress="2/reasoning">Step 2 of 5: Thinking</span>' in html
    assert '<progress value="2" max="5"' in html
    assert "Waiting for an executor" in page_of("conversation", status="queued")
    assert "Number 3 of 12 in the queue batch" in page_of("conversation", status="queued", queue=place)
    assert "data-progress" not in page_of("conversation", status="parked") + page_of("raw", status="completed")


def test_a_key_that_may_write_may_raise_a_budget():
    job = JobView(job_id="j1", agent="a", status=Status.PARKED, waiting_for=Waiting(why="budget", wait_id="w1"))
    page = JobPage(job.model_dump(mode="json"), "conversation", [], [], None, [])
    frame = replace(FRAME, me={**ME, "scopes": ["read", "write"]})
    html = Templates().render(TEMPLATE, page=page, frame=frame, views=VIEWS).decode()

    assert '<button class="main">Raise</button>' in html


def test_a_job_leads_to_its_session_and_cited_documents():
    cited = ({"document": "tides.md", "quote": "The moon.", "document_id": "d&1"}, {"document": "old.md", "quote": "x"})
    html = page_of("conversation", status="completed", answer="So it is.", citations=cited, session_id="s&1")

    assert 'href="/knowledge/document?id=d%261">tides.md' in html and "<strong>old.md" in html
    assert 'href="/sessions/one?id=s%261"' in html


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            {"kind": "tool", "name": "web_fetch", "step": 3, "call": "1"},
            "what web_fetch returned in step 3[/jobs/j1?view=conversation#step-3]",
        ),
        ({"kind": "document", "name": "mail.eml"}, "the document mail.eml that it was given"),
        (
            {"kind": "child", "name": "web_fetch", "step": 2, "call": "1", "job_id": "below"},
            "what the job below[/jobs/below] answered in step 2[/jobs/j1?view=conversation#step-2], which had read "
            "web_fetch",
        ),
        (
            {"kind": "parent", "name": "web_fetch", "job_id": "above"},
            "its task, by the job above[/jobs/above] that had read web_fetch",
        ),
        (
            {"kind": "session", "name": "web_fetch", "job_id": "before"},
            "what was said before in its session, up to the job before[/jobs/before], where web_fetch was read",
        ),
        ({"kind": "session", "name": "<b>"}, "what was said before in its session, where &lt;b&gt; was read"),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_a_tainted_job_names_what_it_read_first(source: dict[str, Any], words: str):
    html = page_of("conversation", status="completed", tainted_by=source)

    shown = re.search(r">Tainted by</dt><dd>(.*?)</dd>", html, re.DOTALL)
    assert shown is not None
    links = re.sub(r'<a href="([^"]*)">(.*?)</a>', r"\2[\1]", shown[1])
    assert " ".join(re.sub(r"<[^>]*>", "", links).split()) == words


def test_a_job_that_read_no_stranger_says_nothing_of_taint():
    assert "Tainted by" not in page_of("conversation", status="completed")


SPAN = {"start": "2026-05-01T00:00:00Z", "name": "invoke_agent", "service": "executor", "status": "ok", "children": []}


class Answers:
    """An API whose job ends between two reads."""

    def __init__(self, *, trace: dict[str, Any] | None = None, ended_at: str | None = "2026-05-01T00:00:01Z") -> None:
        self.client = self
        self._logs = [[{"type": "job.submitted", "seq": 1}]]
        self._logs.append([*self._logs[0], {"type": "job.completed", "seq": 2}])
        self._trace = trace
        self._ended_at = ended_at
        self.logs_read = 0

    async def log(self, job_id: str, *, after: int = 0) -> list[dict[str, Any]]:
        self.logs_read += 1
        events = self._logs.pop(0) if len(self._logs) > 1 else self._logs[0]
        return events[after:]

    async def job(self, job_id: str) -> dict[str, Any]:
        return JobView(
            job_id=job_id,
            agent="helper",
            status=Status.COMPLETED,
            ended_at=datetime.fromisoformat(self._ended_at) if self._ended_at else None,
        ).model_dump(mode="json")

    async def get(self, path: str, *, spans_max: int) -> dict[str, Any]:
        assert spans_max in (ROWS_FIRST + 1, ROWS_MAX + 1)
        self.spans_max = spans_max
        if self._trace is None:
            raise ApiError("no spans", code="not_found", status=404)
        return {"root": self._trace}


async def test_a_job_that_just_ended_shows_its_whole_log():
    page = await read(cast(Visitor, Answers()), "j1", "conversation")

    assert (page.is_live, page.seq) == (False, 2)


@pytest.mark.parametrize(("events", "reads"), [(2, 0), (1, 1)], ids=["whole", "before its end"])
async def test_a_log_is_read_again_only_where_it_lacks_its_end(events: int, reads: int):
    api = Answers()
    log = [await api.log("j1"), await api.log("j1")][events - 1]
    api.logs_read = 0
    page = await read(cast(Visitor, api), "j1", "conversation", log=log)

    assert (page.is_live, page.seq, api.logs_read) == (False, 2, reads)


@pytest.mark.parametrize(("is_long", "rows"), [(False, ROWS_FIRST), (True, ROWS_MAX)])
async def test_a_long_trace_begins_with_its_first_spans(is_long: bool, rows: int):
    span = {**SPAN, "duration_ms": 5, "usage": None, "cost_usd": None}
    api = Answers(trace={**span, "children": [span for _ in range(rows)]})
    page = await read(cast(Visitor, api), "j1", "trace", is_long=is_long)
    html = Templates().render(TEMPLATE, page=page, frame=FRAME, views=VIEWS).decode()

    assert page.trace is not None and (len(page.trace.rows), api.spans_max) == (rows, rows + 1)
    assert f"the first {rows} spans" in html and ("the API has the others" in html) is is_long
    assert ('data-later="/jobs/j1/region?view=trace&amp;more=all"' in html) is not is_long


@pytest.mark.parametrize("is_long", [False, True])
async def test_more_calls_are_offered_where_there_are_more(is_long: bool):
    call = {"call": "1", "tool": "search", "arguments": {}}
    said = {"type": "model.completed", "message": {"text": "", "tool_calls": [], "thinking": "Hm."}}
    called = {**said, "step": 0, "seq": 1, "message": {**said["message"], "tool_calls": [call]}}
    api = Answers()
    api._logs = [[called, *({**said, "step": step, "seq": step + 1} for step in range(1, CALLS_SHOWN + 1))]]
    page = await read(cast(Visitor, api), "j1", "conversation", is_long=is_long)

    assert (page.calls_left_out, page.has_more_calls) == (1, not is_long)


@pytest.mark.parametrize("trace", [None, {**SPAN, "duration_ms": None}], ids=["not stored", "open"])
async def test_a_trace_is_read_again_until_its_spans_are_stored(trace: dict[str, Any] | None):
    just = datetime.now(UTC).isoformat()
    late = [
        await read(cast(Visitor, Answers(trace=trace, ended_at=at)), "j1", "trace")
        for at in (just, "2026-01-01T00:00:00Z", None)
    ]

    assert [page.changes for page in late] == [True, False, False]


async def test_a_trace_without_open_spans_is_read_again_for_some_seconds():
    moments = (datetime.now(UTC), datetime.now(UTC) - timedelta(seconds=10))
    whole = [
        await read(cast(Visitor, Answers(trace={**SPAN, "duration_ms": 5}, ended_at=at.isoformat())), "j1", "trace")
        for at in moments
    ]

    assert [page.changes for page in whole] == [True, False]


def test_a_job_held_by_a_tenants_budget_offers_no_raise():
    waiting = Waiting(why="budget", wait_id="w", budget="team", question="It has no room").model_dump(mode="json")
    html = page_of("conversation", status="parked", waiting_for=waiting)

    assert 'href="/budgets/team"' in html and "Raise</button>" not in html
