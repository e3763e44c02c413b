"""What Grafana makes of a query's rows before its trace panel draws them, function by function.

`convert_fields` is the transformation `convertFieldType` with `other` as its destination (fieldToComplexField of
packages/grafana-data), `frame_to_trace` and `tree_of` are transformTraceDataFrame and transformTraceData of
public/app/features/explore/TraceView, as of Grafana 12.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]


@dataclass
class DrawnSpan:
    """A span as the panel draws it; times in microseconds."""

    span_id: str
    service: str
    name: str
    start: float
    duration: float
    depth: int = 0
    tags: list[tuple[str, Any]] = field(default_factory=list)
    logs: list[Row] = field(default_factory=list)
    references: list[Row] = field(default_factory=list)
    children: list[DrawnSpan] = field(default_factory=list)


def convert_fields(rows: Sequence[Row], transformations: Sequence[Row]) -> list[Row]:
    """Parse the columns that the panel's transformations name; what is no JSON becomes null, without a word."""
    [step] = transformations
    assert step["id"] == "convertFieldType"
    named = {one["targetField"] for one in step["options"]["conversions"] if one["destinationType"] == "other"}
    return [{key: _parsed(value) if key in named else value for key, value in row.items()} for row in rows]


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text, parse_int=float)
    except (TypeError, ValueError):
        return None


def frame_to_trace(rows: Sequence[Row]) -> Row | None:
    """One frame of several fields: every row needs an id, and what is a list is spread as one."""
    if not rows or not all(row["spanID"] for row in rows):
        return None
    return {
        "traceID": rows[0]["traceID"],
        "processes": {row["spanID"]: {"serviceName": row["serviceName"], "tags": row["serviceTags"]} for row in rows},
        "spans": [
            {
                **row,
                "duration": row["duration"] * 1_000,
                "startTime": row["startTime"] * 1_000,
                "references": [
                    *([{"refType": "CHILD_OF", "spanID": row["parentSpanID"]}] if row["parentSpanID"] else []),
                    *({"refType": "FOLLOWS_FROM", **reference} for reference in row["references"]),
                ],
                "logs": [{**entry, "timestamp": entry["timestamp"] * 1_000} for entry in row["logs"]],
            }
            for row in rows
        ],
    }


def tree_of(data: Mapping[str, Any]) -> list[DrawnSpan]:
    """The spans in the order in which they are drawn: children below their parents, siblings by their start."""
    spans: dict[str, DrawnSpan] = {}
    parents: dict[str, str] = {}
    for row in data["spans"]:
        if not row["startTime"]:
            continue
        assert row["spanID"] not in spans, "a repeated id gets another one"
        spans[row["spanID"]] = DrawnSpan(
            row["spanID"],
            data["processes"][row["spanID"]]["serviceName"],
            row["operationName"],
            row["startTime"],
            row["duration"],
            tags=sorted((tag["key"], tag["value"]) for tag in row["tags"]),
            logs=row["logs"],
            references=row["references"],
        )
        if row["references"] and row["references"][0]["refType"] == "CHILD_OF":
            parents[row["spanID"]] = row["references"][0]["spanID"]
    tops: list[DrawnSpan] = []
    for span in spans.values():
        above = spans.get(parents.get(span.span_id, ""))
        (tops if above is None else above.children).append(span)
    return list(_walk(tops, 0))


def _walk(spans: list[DrawnSpan], depth: int) -> Iterator[DrawnSpan]:
    for span in sorted(spans, key=lambda one: one.start):
        span.depth = depth
        yield span
        yield from _walk(span.children, depth + 1)
