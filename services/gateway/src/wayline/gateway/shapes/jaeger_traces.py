"""Traces as Jaeger's query API answers them, and what its clients ask for. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, Field

from wayline.contracts.errors import Reject
from wayline.contracts.span_search import ATTRIBUTES_MAX, SearchSpans
from wayline.contracts.traces import Span, Trace
from wayline.gateway.shapes.body import ONE_LINE
from wayline.gateway.shapes.job_query import Line

TRACES_MAX = 100
"""Traces of one answer."""
WHOLE_MAX = 2**53
"""A larger whole number is another one in a browser."""
MICROSECONDS_MAX = 250_000_000_000_000_000
"""A moment after this has a year that no date holds."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3_600.0}
DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)(ns|us|µs|ms|s|m|h)")
ERROR = "error"
Json = dict[str, Any]
Moment: TypeAlias = Annotated[int, Field(ge=0, le=MICROSECONDS_MAX)]
Duration: TypeAlias = Annotated[str, Field(max_length=64, pattern=ONE_LINE)]


class JaegerQuery(BaseModel):
    """What Jaeger's clients ask a search for."""

    service: Line | None = None
    operation: Line | None = None
    tags: str | None = Field(default=None, max_length=4_000, description="A JSON object of attributes and values.")
    tag: list[Annotated[str, Field(max_length=512)]] = Field(
        default=[], max_length=ATTRIBUTES_MAX, description="The same, as `key:value`."
    )
    start: Moment | None = Field(default=None, description="Microseconds since 1970.")
    end: Moment | None = Field(default=None, description="Microseconds since 1970.")
    minDuration: Duration | None = Field(default=None, description="Such as `1.2s`, `100ms`, `500us`.")
    maxDuration: Duration | None = None
    limit: int = Field(default=20, ge=1, description=f"Traces; at most {TRACES_MAX} are answered.")

    def asked(self, tenant: str, *, user_id: str | None) -> SearchSpans:
        """Return the question that tracing answers. Raises Reject."""
        attributes = {**_tags(self.tags), **dict(_pair(tag) for tag in self.tag)}
        if len(attributes) > ATTRIBUTES_MAX:
            raise _refusal(f"at most {ATTRIBUTES_MAX} tags can be asked for")
        failed = attributes.pop(ERROR, None) == "true"
        return SearchSpans(
            tenant=tenant,
            user_id=user_id,
            trace_ids=True,
            limit=min(self.limit, TRACES_MAX),
            service=self.service,
            name=self.operation,
            status="error" if failed else None,
            attributes=attributes,
            since=None if self.start is None else EPOCH + timedelta(microseconds=self.start),
            until=None if self.end is None else EPOCH + timedelta(microseconds=self.end),
            seconds_min=_seconds(self.minDuration),
            seconds_max=_seconds(self.maxDuration),
        )


def _tags(text: str | None) -> dict[str, str]:
    try:
        tags = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        tags = None
    if not isinstance(tags, dict) or not all(isinstance(value, str) for value in tags.values()):
        raise _refusal("`tags` is a JSON object whose values are text")
    return {_storable(key): _storable(value) for key, value in tags.items()}


def _pair(tag: str) -> tuple[str, str]:
    key, _, value = _storable(tag).partition(":")
    return key, value


def _storable(text: str) -> str:
    """Return a text as an attribute can have it: without NUL, and without half a character."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


def _seconds(duration: str | None) -> float | None:
    """Return a duration of Go's, such as `1m30.5s`, in seconds. Raises Reject."""
    if not duration:
        return None
    parts = DURATION.findall(duration)
    if "".join(number + unit for number, unit in parts) != duration:
        raise _refusal(f"{duration!r} is no duration: write `1.2s`, `100ms` or `500us`")
    return sum(float(number) * UNITS[unit] for number, unit in parts)


def _refusal(reason: str) -> Reject:
    return Reject(reason, code="invalid_query")


def jaeger_answer(data: Sequence[Any], *, total: int | None = None) -> Json:
    """Return an answer in the shape that all of Jaeger's have."""
    return {"data": data, "total": len(data) if total is None else total, "limit": 0, "offset": 0, "errors": None}


def jaeger_trace(trace: Trace, *, now: datetime, spans_max: int | None = None) -> Json:
    """Return a trace as Jaeger has it: its spans in a row, each with the service that made it.

    `spans_max` is how many of its spans were asked for; None: all.
    """
    services: dict[str, str] = {}
    spans = [
        _span(span, services.setdefault(span.service, f"p{len(services) + 1}"), now=now)
        for span in _in_a_row(trace.root)
    ]
    processes = {place: {"serviceName": service, "tags": []} for service, place in services.items()}
    return {"traceID": trace.trace_id, "spans": spans, "processes": processes, "warnings": _warnings(trace, spans_max)}


def _in_a_row(root: Span) -> Iterator[Span]:
    waiting = [root]
    while waiting:
        span = waiting.pop()
        yield span
        waiting.extend(reversed(span.children))


def _span(span: Span, process: str, *, now: datetime) -> Json:
    references = [("CHILD_OF", span.trace_id, span.parent_span_id)] if span.parent_span_id else []
    references += [("FOLLOWS_FROM", link.get("trace_id"), link.get("span_id")) for link in span.links]
    lasted = now - span.start if span.duration_ms is None else timedelta(milliseconds=span.duration_ms)
    return {
        "traceID": span.trace_id,
        "spanID": span.span_id,
        "flags": 1,
        "operationName": span.name,
        "references": [{"refType": kind, "traceID": trace, "spanID": to} for kind, trace, to in references],
        "startTime": _microseconds(span.start),
        "duration": max(0, lasted // timedelta(microseconds=1)),
        "tags": [_tag(key, value) for key, value in _tags_of(span).items()],
        "logs": [_log(event) for event in span.events],
        "processID": process,
        "warnings": ["the span is open"] if span.duration_ms is None else None,
    }


def _tags_of(span: Span) -> Json:
    """Return a span's attributes, and what is a tag of Jaeger's or of no other field there."""
    more: Json = {"span.kind": span.kind}
    if span.cost_usd is not None:
        more["wayline.cost_usd"] = str(span.cost_usd)
    if span.status == "open":
        more["wayline.open"] = True
    if span.status == "error":
        more[ERROR] = True
    if span.status in ("ok", "error"):
        more["otel.status_code"] = span.status.upper()
    return {**span.attributes, **more}


def _tag(key: str, value: Any) -> Json:
    if isinstance(value, bool):
        return {"key": key, "type": "bool", "value": value}
    if isinstance(value, int) and abs(value) <= WHOLE_MAX:
        return {"key": key, "type": "int64", "value": value}
    if isinstance(value, float):
        return {"key": key, "type": "float64", "value": value}
    return {"key": key, "type": "string", "value": value if isinstance(value, str) else json.dumps(value)}


def _log(event: Json) -> Json:
    named = {"event": event.get("name", ""), **(event.get("attributes") or {})}
    try:
        at = _microseconds(datetime.fromisoformat(event["at"]))
    except (KeyError, TypeError, ValueError):
        at = 0
    return {"timestamp": at, "fields": [_tag(key, value) for key, value in named.items()]}


def _microseconds(at: datetime) -> int:
    return (at - EPOCH) // timedelta(microseconds=1)


def _warnings(trace: Trace, spans_max: int | None) -> list[str] | None:
    if spans_max is not None and trace.totals.spans >= spans_max:
        return [f"these are {trace.totals.spans} of its spans: ask for the trace by its id"]
    return [f"at least {trace.totals.missing} spans have not arrived"] if trace.totals.missing else None
