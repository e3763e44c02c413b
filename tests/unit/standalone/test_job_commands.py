"""What `wayline feedback`, `jobs bulk` and `audit` ask the gateway, and what they show."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from wayline.contracts.feedback import Feedback
from wayline.gateway.shapes.approvals import Decided, WaitPage
from wayline.gateway.shapes.audit import AuditEntry, AuditPage
from wayline.gateway.shapes.feedback import FeedbackBody
from wayline.gateway.shapes.job_actions import ActionBody, ActionPage, ActionProgress, RefusedJob
from wayline.standalone.cli import app
from wayline.standalone.commands import bulk, feedback
from wayline.standalone.terminal.action_views import action_progress, actions_table, audit_table
from wayline.standalone.terminal.job_progress import JobProgress, tenant_event_line
from wayline.standalone.terminal.job_views import decided_table, feedback_table

AT = datetime(2026, 5, 4, 9, 30, tzinfo=UTC)
ACTION = ActionProgress(
    action_id="action_1",
    action="cancel",
    state="running",
    counts={"done": 3, "refused": 1},
    refused=(RefusedJob(job_id="j9", reason="it has ended"),),
    waits_for="the bus is full",
    asked_by="ann",
    begun_at=AT,
)


def asked_by(module: Any, *words: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, dict[str, Any]]:
    """Run a command, and return what it posts and where."""
    asked: list[tuple[str, dict[str, Any]]] = []

    class Client:
        async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
            asked.append((path, body))
            return {"state": "done"}

    async def work(ask: Any) -> None:
        await ask(Client())

    monkeypatch.setattr(module, "answer", lambda ask, **_: asyncio.run(work(ask)))
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    return asked[0]


def shown(drawn: Any) -> str:
    console = Console(width=160, record=True, force_terminal=True)
    console.print(drawn)
    return console.export_text()


def test_feedback_is_sent_as_the_api_takes_it(monkeypatch: pytest.MonkeyPatch):
    words = ("feedback", "j1", "--down", "--comment", "no source", "--key", "helpful")

    path, body = asked_by(feedback, *words, monkeypatch=monkeypatch)

    assert path == "/v1/jobs/j1/feedback"
    assert FeedbackBody.model_validate(body) == FeedbackBody(label="down", comment="no source", key="helpful")
    assert CliRunner().invoke(app, ["feedback", "j1", "--up", "--down"]).exit_code == 2


def test_an_action_is_sent_as_the_api_takes_it(monkeypatch: pytest.MonkeyPatch):
    words = ("jobs", "bulk", "cancel", "--agent", "a", "--status", "running", "--reason", "enough", "--limit", "7")

    path, body = asked_by(bulk, *words, monkeypatch=monkeypatch)
    _, named = asked_by(bulk, "jobs", "bulk", "tag", "j1", "j2", "--add", "case:7", monkeypatch=monkeypatch)

    wanted = {"action": "cancel", "filter": {"agent": ["a"], "status": ["running"]}, "limit": 7, "reason": "enough"}
    assert path == "/v1/jobs/actions"
    assert ActionBody.model_validate(body) == ActionBody.model_validate(wanted)
    assert ActionBody.model_validate(named).job_ids == ("j1", "j2")


def test_an_action_without_any_condition_is_refused():
    done = CliRunner().invoke(app, ["jobs", "bulk", "cancel"])

    assert done.exit_code == 2 and "all jobs would be meant" in done.output


def test_actions_feedback_and_changes_are_drawn_whole():
    said = Feedback(by="ann", key="helpful", score=0.25, label="wrong", comment="[bold]no", at=AT)
    entry = AuditEntry(
        **{"id": 1, "at": AT, "kind": "agent", "name": "critic", "operation": "put_agent", "by": "ann"},
        **{"is_operator": False, "outcome": "refused", "code": "not_found"},
    )
    event = {"type": "job.failed", "job_id": "j1", "at": AT.isoformat(), "agent": "a", "error": "crash_loop"}
    drawn = (
        action_progress(ACTION.model_dump(mode="json")),
        actions_table(ActionPage(actions=(ACTION,)).model_dump(mode="json")),
        feedback_table(said.model_dump(mode="json")),
        audit_table(AuditPage(entries=(entry,)).model_dump(mode="json")),
        tenant_event_line(event),
    )

    text = "".join(map(shown, drawn))

    for word in ("3 done, 1 refused", "j9: it has ended", "the bus is full", "0.25", "[bold]no", "refused (not_found)"):
        assert word in text
    assert "2026-05-04T09:30:00  j1  a  job.failed  crash_loop" in text


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        ([(0, "Once "), (5, "upon")], "Once upon"),
        ([(12, "a time"), (18, ".")], "… a time."),
        ([(0, "Once "), (10, "a time")], "Once a time"),
        ([(None, "Once "), (None, "upon")], "Once upon"),
    ],
)
def test_an_answer_whose_beginning_was_missed_says_so(pieces: list[tuple[int | None, str]], said: str):
    progress = JobProgress(Console(force_terminal=False))
    told: list[str] = []
    progress._show_activity = told.append  # type: ignore[method-assign]

    for offset, text in pieces:
        progress.show({"type": "delta", "step": 1, "attempt": 1, "text": text, "offset": offset})

    assert told[-1] == said


def test_decisions_are_listed_with_who_made_them():
    decided = Decided(
        **{"id": "a1", "why": "approval", "tool": "pay", "decision": "approved", "by": "ann", "edited": True},
        **{"reason": "it is due", "decided_at": AT, "job_id": "j1", "agent": "banker"},
    )

    drawn = shown(decided_table(WaitPage(approvals=(), decided=(decided,)).model_dump(mode="json")))

    assert all(word in drawn for word in ("j1", "pay", "approved with other arguments: it is due", "ann"))
