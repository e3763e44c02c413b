"""Traces in Jaeger's shape, and what its clients ask for."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from wayline.contracts.errors import Reject
from wayline.contracts.traces import Span, Totals, Trace
from wayline.gateway.shapes.jaeger_traces import JaegerQuery, jaeger_trace

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def span(span_id: str, parent: str | None, **fields: object) -> Span:
    given = {
        "name": f"span {span_id}",
        "service": "executor",
        "start": NOON,
        "duration_ms": 1.5,
        "status": "ok",
        **fields,
    }
    return Span.model_validate({"trace_id": "a" * 32, "span_id": span_id, "parent_span_id": parent, **given})


def test_a_trace_becomes_spans_in_a_row_with_their_services():
    note = {"name": "claimed", "at": NOON.isoformat(), "attributes": {"epoch": 1}}
    child = span(
        "c1", "r1", service="tool-registry", cost_usd=Decimal("0.01"), attributes={"n": 2**60, "deep": {"a": 1}}
    )
    link = {"trace_id": "b" * 32, "span_id": "d" * 16}
    late = span("c2", "r1", duration_ms=None, status="open")
    root = span("r1", None, status="error", events=(note,), links=(link,), children=(child, late))
    trace = Trace(trace_id="a" * 32, job_id="j", root=root, totals=Totals(duration_ms=1.5, tokens=0, cost_usd=None))

    said = jaeger_trace(trace, now=NOON + timedelta(seconds=2))

    first, second, third = said["spans"]
    assert said["processes"] == {
        "p1": {"serviceName": "executor", "tags": []},
        "p2": {"serviceName": "tool-registry", "tags": []},
    }
    assert [(one["spanID"], one["processID"], one["duration"]) for one in said["spans"]] == [
        ("r1", "p1", 1_500),
        ("c1", "p2", 1_500),
        ("c2", "p1", 2_000_000),
    ]
    assert first["startTime"] == int(NOON.timestamp()) * 1_000_000
    assert first["references"] == [{"refType": "FOLLOWS_FROM", "traceID": "b" * 32, "spanID": "d" * 16}]
    assert second["references"] == [{"refType": "CHILD_OF", "traceID": "a" * 32, "spanID": "r1"}]
    assert {"key": "error", "type": "bool", "value": True} in first["tags"]
    assert {"key": "wayline.cost_usd", "type": "string", "value": "0.01"} in second["tags"]
    assert {"key": "n", "type": "string", "value": str(2**60)} in second["tags"]
    assert {"key": "deep", "type": "string", "value": '{"a": 1}'} in second["tags"]
    assert {"key": "wayline.open", "type": "bool", "value": True} in third["tags"]
    fields = [{"key": "event", "type": "string", "value": "claimed"}, {"key": "epoch", "type": "int64", "value": 1}]
    assert first["logs"] == [{"timestamp": first["startTime"], "fields": fields}]


def test_a_clients_question_becomes_ours():
    query = JaegerQuery(
        service="executor",
        operation="chat m",
        tags='{"error": "true", "gen_ai.request.model": "m"}',
        tag=["k:v:w"],
        start=1_000_000,
        end=2_500_000,
        minDuration="1m1.5s",
        maxDuration="100ms",
        limit=5_000,
    )

    asked = query.asked("acme", user_id="u1")

    assert (asked.service, asked.name, asked.status, asked.user_id) == ("executor", "chat m", "error", "u1")
    assert asked.attributes == {"gen_ai.request.model": "m", "k": "v:w"}
    assert (asked.seconds_min, asked.seconds_max, asked.limit) == (61.5, 0.1, 100)
    assert asked.since == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert asked.until == datetime(1970, 1, 1, 0, 0, 2, 500_000, tzinfo=UTC)


@pytest.mark.parametrize(
    "wrong",
    [{"tags": "{"}, {"tags": "[" * 4_000}, {"tags": '{"a": 1}'}, {"minDuration": "soon"}, {"minDuration": "1s x"}],
)
def test_what_is_no_question_of_jaegers_is_refused(wrong: dict[str, str]):
    with pytest.raises(Reject):
        JaegerQuery.model_validate(wrong).asked("acme", user_id=None)


def test_half_a_character_in_a_tag_is_no_error():
    asked = JaegerQuery(tags='{"a\\u0000": "\\ud800"}').asked("acme", user_id=None)

    assert asked.attributes == {"a\ufffd": "?"}
    assert asked.model_dump_json()
