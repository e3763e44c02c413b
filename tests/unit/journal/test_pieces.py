"""A piece of text of a call that is over is not shown, however late it comes."""

from datetime import UTC, datetime
from decimal import Decimal

from wayline.contracts import events as e
from wayline.contracts.chat import AssistantMessage
from wayline.contracts.jobs import Delta, Failure
from wayline.contracts.money import Usage
from wayline.journal.pieces import Pieces

STAMP = {
    "job_id": "j",
    "seq": 1,
    "at": datetime(2026, 1, 1, tzinfo=UTC),
    "trace": e.SpanRef(trace_id="0" * 32, span_id="0" * 16),
}


def asked(step: int, attempt: int) -> e.ModelRequested:
    return e.ModelRequested(**STAMP, step=step, attempt=attempt, attempt_id="a", provider="p", model="m")


def failed(step: int, attempt: int) -> e.ModelFailed:
    error = Failure(code="stream_cut", message="no")
    return e.ModelFailed(**STAMP, step=step, attempt=attempt, attempt_id="a", error=error, retryable=True)


def completed(step: int, attempt: int) -> e.ModelCompleted:
    return e.ModelCompleted(
        **STAMP,
        step=step,
        attempt=attempt,
        attempt_id="a",
        message=AssistantMessage(text="x"),
        usage=Usage(),
        cost_usd=Decimal(0),
        stop_reason="end",
        duration_ms=1,
    )


def wanted(*events: e.Event) -> list[tuple[int, int]]:
    pieces = Pieces()
    for event in events:
        pieces.hear(event)
    calls = [(1, 1), (1, 2), (2, 1)]
    return [call for call in calls if pieces.wants(Delta(step=call[0], attempt=call[1], text="x"))]


def test_deltas_of_the_current_and_newer_calls_are_shown():
    assert wanted() == [(1, 1), (1, 2), (2, 1)]
    assert wanted(asked(1, 1)) == [(1, 1), (1, 2), (2, 1)]


def test_deltas_of_failed_ended_or_superseded_calls_are_not_shown():
    assert wanted(asked(1, 1), failed(1, 1)) == [(1, 2), (2, 1)]
    assert wanted(asked(1, 1), failed(1, 1), asked(1, 2)) == [(1, 2), (2, 1)]
    assert wanted(asked(1, 1), asked(1, 2)) == [(1, 2), (2, 1)]
    assert wanted(asked(1, 1), completed(1, 1)) == [(1, 2), (2, 1)]
    assert wanted(asked(1, 1), completed(1, 1), asked(2, 1)) == [(2, 1)]
