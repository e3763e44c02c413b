"""Where a job first read the words of strangers, by each way that they come."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import Attachment
from wayline.contracts.jobs import Parent, Route, Status, SubmitJob, TaintSource
from wayline.contracts.tools import Effect, ToolDefinition
from wayline.journal import evolve, view
from wayline.testkit.jobs import job_with

Kind = TypeVar("Kind", bound=e.Event)
WEB = ToolDefinition(name="web_fetch", effect=Effect.READ, untrusted=True)


def event(kind: type[Kind], **payload: Any) -> Kind:
    stamp = {"job_id": "j", "seq": 9, "at": datetime(2026, 1, 1, tzinfo=UTC)}
    return kind.model_validate({**stamp, "trace": e.SpanRef(trace_id="0" * 32, span_id="0" * 16), **payload})


def result(**payload: Any) -> e.ToolCompleted:
    return event(e.ToolCompleted, **{"step": 3, "call": "2", "tool": "web_fetch", "status": "success", **payload})


def submitted() -> e.JobSubmitted:
    parent = Parent(job_id="above", step=1, call="1", depth=1, tainted_by="web_fetch")
    job = SubmitJob(tenant="t", agent="helper", input="go")
    return event(e.JobSubmitted, tenant="t", job=job, content_hash="", parent=parent)


def routed() -> e.JobRouted:
    files = [
        Attachment(
            document_id=name, name=name, sha256="0" * 64, media_type="text/plain", size_bytes=1, untrusted=untrusted
        )
        for name, untrusted in (("note.txt", False), ("mail.eml", True), ("other.eml", True))
    ]
    return event(
        e.JobRouted,
        agent="helper",
        agent_version=1,
        config=AgentConfig(),
        route=Route(provider="p", model="m", tier="standard", reason="r"),
        limits=e.Limits(max_steps=3, max_seconds=60, max_output_tokens=100),
        attachments=files,
    )


def continued(**payload: Any) -> e.SessionContinued:
    return event(e.SessionContinued, tainted_by="web_fetch", **payload)


CHILD = e.ChildEnd(job_id="below", status=Status.COMPLETED, tainted_by="web_fetch")
WAYS = {
    "a result": (result(), {"kind": "tool", "name": "web_fetch", "step": 3, "call": "2"}),
    "an error": (
        result(status="failed", error={"code": "tool_failed", "message": "no"}),
        {"kind": "tool", "name": "web_fetch", "step": 3, "call": "2"},
    ),
    "a child": (
        result(tool="run_agent", child=CHILD),
        {"kind": "child", "name": "web_fetch", "step": 3, "call": "2", "job_id": "below"},
    ),
    "a document": (routed(), {"kind": "document", "name": "mail.eml"}),
    "a parent": (submitted(), {"kind": "parent", "name": "web_fetch", "job_id": "above"}),
    "a session": (
        continued(after={"job_id": "before", "seq": 4, "hash": "h"}),
        {"kind": "session", "name": "web_fetch", "job_id": "before"},
    ),
    "a lost session": (continued(lost="it is gone"), {"kind": "session", "name": "web_fetch"}),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_each_way_names_its_source(way: tuple[e.Event, dict[str, Any]]):
    read, source = way

    job = evolve(job_with(offered=(WEB,)), read)

    assert job.tools.taint == TaintSource.model_validate(source)
    assert view(job).tainted_by == job.tools.taint
    assert job.tools.tainted_by == source["name"]


@pytest.mark.parametrize("later", ["a result", "a child", "a document", "a session"])
def test_the_first_source_stays(later: str):
    first = TaintSource(kind="tool", name="look", step=1, call="1")

    assert evolve(job_with(offered=(WEB,), taint=first), WAYS[later][0]).tools.taint == first


def test_a_trusted_result_is_no_source():
    job = evolve(job_with(offered=(WEB.model_copy(update={"untrusted": False}),)), result())

    assert (job.tools.taint, view(job).tainted_by) == (None, None)
