"""Pages of the console with words of strangers in every field that may hold some, made of answers of the API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from wayline.console.pages import approvals, jobs
from wayline.console.pages.agents import agent_list, agent_trial, agent_uses
from wayline.console.pages.agents.agent_trial import Trial
from wayline.console.pages.agents.agent_uses import AgentUses
from wayline.console.pages.approvals import Approvals
from wayline.console.pages.confirm import Confirmation
from wayline.console.pages.frame import Frame
from wayline.console.pages.job import TEMPLATE as JOB_TEMPLATE
from wayline.console.pages.job import VIEWS, JobPage
from wayline.console.pages.job_calls import TEMPLATE as CALL_TEMPLATE
from wayline.console.pages.job_calls import CallPage, diff_of
from wayline.console.pages.job_fork import BESIDE_TEMPLATE, Beside
from wayline.console.pages.jobs import Jobs
from wayline.console.render.environment import Templates
from wayline.console.render.steps import steps_of
from wayline.console.render.waterfall import waterfall
from wayline.contracts.document_changes import DocumentChunk
from wayline.contracts.jobs import JobView, Status
from wayline.contracts.memory import Subject, SubjectLink, SubjectRef

from .unit.console import (
    test_agent_views,
    test_approvals_page,
    test_dead_letters_page,
    test_documents_page,
    test_facts_pages,
    test_schedules_pages,
    test_search_page,
    test_servers_pages,
    test_sessions_page,
    test_tools_pages,
    test_upload_page,
    test_webhooks_page,
)

NOW: Final = datetime(2026, 5, 1, tzinfo=UTC)
AT: Final = "2026-04-30T10:00:00Z"
SCOPES: Final = ["read", "write", "approve", "admin", "tools", "webhooks", "operator"]
TEMPLATES: Final = Templates()
Words = Sequence[str]
Json = dict[str, Any]


def frame_of(section: str, word: str) -> Frame:
    """Return the surroundings of a page whose tenant and key have a stranger's names."""
    me = {"tenant": word, "name": word, "scopes": SCOPES, "open": False, "version": "1", "user_id": None}
    return Frame(word, section, me, "token", "system", section, now=NOW)


def shown(template: str, section: str, word: str, **values: Any) -> str:
    """Return a page as a browser gets it."""
    return TEMPLATES.render(template, frame=frame_of(section, word), **values).decode()


def job_of(word: str, **fields: Any) -> Json:
    """Return a job that names these words wherever a stranger chooses them."""
    route = {"provider": word, "model": word, "tier": "flash", "reason": word, "estimated_cost_usd": "0.01"}
    said = {"agent": word, "input": word, "user_id": word, "session_id": word, "tags": (word,), "reason": word}
    base = JobView(job_id="j1", agent="a", status=Status.COMPLETED).model_dump(mode="json")
    return base | said | {"route": route, "created_at": AT, **fields}


def events_of(words: Words, *, tool: str | None = None) -> list[Json]:
    """Return a log with one step for each of these words: what the model thought and said, a call and its result."""
    events = list[Json]()
    for number, word in enumerate(words, 1):
        named = word if tool is None else tool
        calls = [{"call": "1", "tool": named, "arguments": {word: word}}]
        message = {"text": word, "tool_calls": calls, "thinking": word}
        place = {"step": number, "attempt": 1, "attempt_id": f"m{number}", "at": AT}
        prefix = [{"part": "messages", "hash": str(number), "count": 1, "tokens": 60}]
        asked = {"provider": word, "model": word, "prefix": prefix, "cache_break": None}
        said = {"message": message, "usage": None, "cost_usd": None, "notes": [word]}
        error = {"code": "tool_failed", "message": word}
        result = {"call": "1", "tool": named, "status": "failed", "content": word, "error": error, "duration_ms": 3.0}
        begun = {"call": "1", "tool": named, "arguments": {word: [word]}, "effect": "read"}
        events += [
            {"seq": 4 * number, "type": "model.requested", **place, **asked},
            {"seq": 4 * number + 1, "type": "model.completed", **place, **said},
            {"seq": 4 * number + 2, "type": "tool.requested", **place, **begun},
            {"seq": 4 * number + 3, "type": "tool.completed", **place, **result},
        ]
    return events


def a_job(words: Words, view: str = "conversation") -> str:
    """Return the page of a job whose first word is its input, its answer and its error."""
    word = words[0]
    citations = [{"document": word, "quote": word, "document_id": word, "chunk_id": word, "covered": 0.5}]
    error = {"code": "internal", "message": word, "retryable": False}
    child = {"job_id": "j2", "agent": word}
    job = job_of(word, answer=word, partial=True, citations=citations, error=error, children=[child])
    # A filter of events has one choice for each tool.
    events = events_of(words, tool=word if view == "events" else None)
    span = {"name": word, "service": word, "start": AT, "duration_ms": 3.0, "status": "error", "usage": None}
    root = {**span, "cost_usd": None, "attributes": {}, "children": []}
    trace = waterfall(root, now=NOW) if view == "trace" else None
    page = JobPage(job, view, steps_of(events), events, trace, [], problem=word)  # pyright: ignore[reportArgumentType]
    return shown(JOB_TEMPLATE, "/jobs", word, page=page, views=VIEWS)


def wait_of(word: str, number: int, why: str = "approval") -> Json:
    """Return a call that waits for a person."""
    said = {"agent": word, "tool": word, "reason": word, "description": word, "input": word, "user_id": word}
    return {
        **test_approvals_page.WAIT,
        **said,
        **{"id": f"a{number}", "why": why, "arguments": {word: word, "more": [word]}, "cause": None},
        "input_schema": {word: word},
    }


def a_waiting_job(words: Words) -> str:
    """Return the page of a job that waits for people."""
    waiting = {"why": "approval", "wait_id": "w1", "question": words[0]}
    job = job_of(words[0], status="parked", waiting_for=waiting)
    waits = [
        wait_of(word, number, why)
        for number, word in enumerate(words)
        for why in ("approval", "input", "needs_decision")
    ]
    page = JobPage(job, "conversation", [], [], None, waits)
    return shown(JOB_TEMPLATE, "/jobs", words[0], page=page, views=VIEWS)


def approval_list(words: Words, *, as_fields: bool = False) -> str:
    """Return the list of what waits, its arguments as JSON or as fields by a schema that names the words."""
    waits = [wait_of(word, number) for number, word in enumerate(words)]
    said = {word: {"properties": {word: {"description": word}, "more": {"enum": [word]}}} for word in words}
    schemas: Json = said if as_fields else {}
    page = Approvals(waits, words[0], problem=words[0], schemas=schemas)
    return shown(approvals.TEMPLATE, "/approvals", words[0], page=page)


def decision_list(words: Words) -> str:
    """Return the list of what was decided."""
    fields = {"decision": "denied", "edited": True, "why": "approval", "asked_at": AT, "decided_at": AT}
    decided = [{**fields, "job_id": "j1", "tool": word, "by": word, "reason": word} for word in words]
    return shown(approvals.HISTORY_TEMPLATE, "/approvals", words[0], page={"decided": decided, "next_cursor": words[0]})


def job_list(words: Words) -> str:
    """Return the list of jobs with every column, and a search that was not understood."""
    found = [job_of(word, error={"code": "x", "message": word}) for word in words]
    facets = {"jobs": 1, "counted_max": 9, "status": {"completed": 1}, "agent": {words[0]: 1}}
    search = jobs.job_search.parse(f'agent:"{words[0]}" {words[0]}', now=NOW)
    chips = tuple(replace(chip, text=words[0]) for chip in search.chips[:1])
    page = Jobs(replace(search, problems=(words[0],), chips=chips), found, facets, None, words[0], jobs.COLUMNS)
    values = {"sorts": jobs.SORTS, "columns": jobs.COLUMNS, "actions": (), "kept": ()}
    return shown(jobs.TEMPLATE, "/jobs", words[0], page=page, **values)


def a_call(words: Words, view: str = "result") -> str:
    """Return the page of one call."""
    [step] = steps_of(events_of(words[:1]))
    call = step.calls["1"]
    diff = diff_of(call)
    view = view if diff or view == "result" else "result"
    page = CallPage("j1", 1, "1", call, diff)
    return shown(CALL_TEMPLATE, "/jobs", words[0], page=page, view=view, split=True)


def a_fork(words: Words) -> str:
    """Return the page of a fork beside its origin."""
    job = job_of(words[0], answer=words[0], error={"code": "x", "message": words[0]})
    steps = steps_of(events_of(words[:1]))
    return shown(BESIDE_TEMPLATE, "/jobs", words[0], page=Beside(job, job, steps, steps))


def documents(words: Words) -> str:
    """Return the list of documents, and the upload that refused them."""
    found = [
        {**test_documents_page.document_of(), "document_id": word, "name": word, "collection": word, "error": word}
        for word in words
    ]
    refused = [test_upload_page.Refused(word, word) for word in words]
    return test_documents_page.list_of(*found) + test_upload_page.page_of(*found, refused=refused)


def a_document(words: Words) -> str:
    """Return the page of a document."""
    word = words[0]
    chunks = [DocumentChunk(chunk_id="c", position=0, text=one, headings=(one,)).model_copy() for one in words]
    fields = {"name": word, "metadata": {word: word}, "collection": word, "error": word, "audience": [word]}
    return test_documents_page.page_of({**test_documents_page.document_of(), **fields, "language": word}, *chunks)


def search_hits(words: Words) -> str:
    """Return what a search found."""
    hits = [
        {**test_search_page.hit_of(metadata={"headings": [], "page": 3}, untrusted=True), "document": word}
        | {"text": word, "document_id": word}
        for word in words
    ]
    return test_search_page.page_of(*hits, query=words[0], note=words[0])


def facts(words: Words) -> str:
    """Return the list of insights, one of them, and its subject."""
    fact_of = test_facts_pages.fact_of
    ref = SubjectRef(type="client", id="x").model_dump(mode="json")
    found = [
        {**fact_of(), "text": word, "category": word, "quote": word, "keywords": [word], "about": word}
        | {"retired_because": word, "subject": {**ref, "id": word}}
        for word in words
    ]
    link = SubjectLink(type="client", id="x", kind="k").model_dump(mode="json") | {"id": words[0], "kind": words[0]}
    subject = Subject(type="client", id="x").model_dump(mode="json")
    subject |= {"id": words[0], "name": words[0], "attributes": {words[0]: words[0]}, "links": [link]}
    page = test_facts_pages.subjects.SubjectPage(subject, words[0], [found[0]])
    values = {
        "shown": test_facts_pages.subjects.shown_subject(page.subject),
        "kind": test_facts_pages.KINDS["insights"],
    }
    return (
        test_facts_pages.list_of(*found, kind="insights", problem=words[0])
        + test_facts_pages.page_of(found[0], *found, kind="insights")
        + shown(test_facts_pages.subjects.TEMPLATE, "/knowledge", words[0], page=page, **values)
    )


def agents(words: Words) -> str:
    """Return the list of agents, what uses one of them, and a trial of it."""
    rows = [
        agent_list.AgentRow(
            agent={"name": word, "version": 3, "config": {"description": word, "model": word or "m"}},
            jobs=5,
            cost_usd=None,
            last={"job_id": "j1", "status": "completed", "created_at": AT},
        )
        for word in words
    ]
    word = words[0]
    latest = {
        **{"status": "failed", "job_id": "j1", "accepted_at": AT},
        **{"metadata": {"steps": 1, "tokens": 9, "cost_usd": None}, "outcome": {"answer": word, "error": None}},
    }
    named = [{"name": one} for one in words]
    used = AgentUses(word, 2, True, named, list(words), list(words), word, latest, word)
    trial = Trial(word, 2, [(word, word)], [job_of(word, answer=word, agent_version=2)])
    return (
        shown(agent_list.TEMPLATE, "/agents", word, page=agent_list.AgentTable(rows, knows_costs=True))
        + shown(agent_uses.TEMPLATE, "/agents", word, page=used)
        + shown(agent_trial.TEMPLATE, "/agents", word, page=trial)
    )


def agent_versions(words: Words) -> str:
    """Return the versions of an agent."""
    found = test_agent_views.differences({"instructions": words[0], "style": None}, {"instructions": "x", "style": "y"})
    page = replace(test_agent_views.versions_page(problem=words[0]), found=found)
    versions = [{**one, "saved_by": words[0], "changed": [words[0]], "labels": [words[0]]} for one in page.versions]
    return test_agent_views.html_of("agents/versions.html", replace(page, versions=versions), "admin")


def tools(words: Words) -> str:
    """Return the catalogue and one tool after a call of it."""
    return "".join(test_tools_pages._with(word) for word in words)


def servers(words: Words) -> str:
    """Return every page of servers."""
    return "".join(test_servers_pages.everything(word) for word in words)


def schedules(words: Words) -> str:
    """Return every page of schedules."""
    return "".join(test_schedules_pages.everything(word) for word in words)


def a_session(words: Words) -> str:
    """Return a session."""
    word = words[0]
    session = test_sessions_page.session_of()
    turns = [{"number": n, "after": None, "job": job_of(one, answer=one)} for n, one in enumerate(words, 1)]
    entity = {"type": word, "id": word, "name": word, "tool": word, "untrusted": True}
    session |= {"session_id": word, "agent": word, "user_id": word, "page": turns, "busy_with": word}
    session["context"] |= {"entities": [entity], "tools_used": [word]}
    return test_sessions_page.page_of(session, problem=word)


def webhooks(words: Words) -> str:
    """Return the list of webhooks, one of them, and a delivery."""
    word = words[0]
    hook, sent = test_webhooks_page.webhook_of(), test_webhooks_page.delivery_of()
    hook |= {"url": f"https://x/{word}", "description": word, "tags": [word], "agents": [word]}
    answer = {"at": AT, "status": 200, "body": word, "error": word, "duration_ms": 3.0}
    request = {**sent["request"], "url": word, "headers": {word: word}, "body": word}
    sent |= {"request": request, "reason": word, "type": word, "answers": [answer]}
    return (
        test_webhooks_page.list_of(hook)
        + test_webhooks_page.page_of(hook, sent, problem=word, tested=sent)
        + test_webhooks_page.delivery_page(sent)
    )


def dead_letters(words: Words) -> str:
    """Return the lists of dead letters."""
    keep = {"at": AT, "fingerprint": test_dead_letters_page.PRINT}
    return "".join(
        test_dead_letters_page.list_of(
            view, *({**test_dead_letters_page.said(test_dead_letters_page.ROWS[view], word), **keep} for word in words)
        )
        for view in test_dead_letters_page.LISTS
    )


def questions(words: Words) -> str:
    """Return the page that asks before a deletion, and one that says what went wrong."""
    word = words[0]
    page = Confirmation(word, word, "/sessions/forget", "/sessions", (word,), (word,), ((word, word),))
    problem = TEMPLATES.render("problem.html", title=word, detail=word, status=422, theme="system").decode()
    return shown("confirm.html", "/sessions", word, page=page) + problem


@dataclass(frozen=True, slots=True)
class HostilePage:
    """A page, and how many words stand in it at once."""

    make: Callable[[Words], str]
    at_once: int = 1
    is_rare: bool = False
    """Whether the ordinary suite shows it with some of the words alone."""
    is_shaped: bool = False
    """Whether its elements depend on what the words are like: a field of many lines is another than one of one."""


PAGES: Final = {
    "a job": HostilePage(a_job, 12),
    "events": HostilePage(lambda words: a_job(words, "events"), 40),
    "context": HostilePage(lambda words: a_job(words, "context"), 40),
    "trace": HostilePage(lambda words: a_job(words, "trace"), is_rare=True),
    "raw": HostilePage(lambda words: a_job(words, "raw"), is_rare=True),
    "a job that waits": HostilePage(a_waiting_job, 12),
    "approvals": HostilePage(approval_list, 40),
    "approvals by fields": HostilePage(lambda words: approval_list(words, as_fields=True), 40, is_shaped=True),
    "decisions": HostilePage(decision_list, 40),
    "jobs": HostilePage(job_list, 40),
    "a call": HostilePage(a_call, is_rare=True),
    "a difference": HostilePage(lambda words: a_call(words, "diff"), is_rare=True),
    "a fork": HostilePage(a_fork, is_rare=True),
    "documents": HostilePage(documents, 40),
    "a document": HostilePage(a_document, 40),
    "search": HostilePage(search_hits, 40),
    "facts": HostilePage(facts, 40),
    "agents": HostilePage(agents, 40),
    "versions": HostilePage(agent_versions, is_rare=True, is_shaped=True),
    "tools": HostilePage(tools, is_rare=True),
    "servers": HostilePage(servers, is_rare=True),
    "schedules": HostilePage(schedules, is_rare=True),
    "a session": HostilePage(a_session, 40),
    "webhooks": HostilePage(webhooks, is_rare=True),
    "dead letters": HostilePage(dead_letters, 40),
    "questions": HostilePage(questions, is_rare=True),
}
