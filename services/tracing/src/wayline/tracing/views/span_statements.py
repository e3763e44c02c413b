"""The statements that find spans: one condition for each thing that is asked for, and no other."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from wayline.contracts.span_search import FoundSpan, SearchSpans
from wayline.store import Record
from wayline.telemetry import names
from wayline.tracing.errors import BadCursor

LOOKED_MAX = 50_000
"""Spans that one page looks at; where they are not enough it ends there, and its cursor goes on."""
COLUMNS = """trace_id, span_id, parent_span_id, name, service, kind, start, duration_ms, status,
    attributes::text AS attributes, usage::text AS usage, cost_usd"""
LASTED_MS = "coalesce(duration_ms, extract(epoch FROM now() - start) * 1000)"
Place = tuple[datetime, str, str]
"""The start and the ids of the span that a page ended with."""


@dataclass(frozen=True)
class SpanStatements:
    """What reads a page, and what tells where it ends when nothing more was found in what it looks at."""

    page: str
    end: str
    arguments: tuple[Any, ...]
    end_arguments: tuple[Any, ...]


def statements(asked: SearchSpans, after: Place | None) -> SpanStatements:
    """Return the statements of a page; it reads one span more than asked for, or the newest of each trace."""
    arguments: list[Any] = []

    def filled(condition: str, *values: Any) -> str:
        arguments.extend(values)
        first = len(arguments) - len(values) + 1
        return condition.format(*(f"${first + n}" for n in range(len(values))))

    window = [filled("tenant = {}", asked.tenant)]
    if asked.since is not None:
        window.append(filled("start >= {}", asked.since))
    if asked.until is not None:
        window.append(filled("start < {}", asked.until))
    if after is not None:
        window.append(filled("(start, trace_id, span_id) < ({}::timestamptz, {}::text, {}::text)", *after))
    order = "ORDER BY start DESC, trace_id DESC, span_id DESC"
    looked = f"FROM spans WHERE {' AND '.join(window)} {order}"
    end = f"SELECT start, trace_id, span_id {looked} OFFSET {LOOKED_MAX - 1} LIMIT 1"
    end_arguments = tuple(arguments)
    met = [filled(condition, *values) for condition, *values in _conditions(asked)]
    where = f"WHERE {' AND '.join(met)}" if met else ""
    source = f"FROM (SELECT * {looked} LIMIT {LOOKED_MAX}) AS spans {where}"
    page = f"SELECT {COLUMNS} {source} {order} LIMIT {asked.limit + 1}"
    if asked.trace_ids:
        each = f"SELECT DISTINCT ON (trace_id) spans.* {source} ORDER BY trace_id, start DESC, span_id DESC"
        page = f"SELECT {COLUMNS} FROM ({each}) AS spans {order} LIMIT {asked.limit}"
    return SpanStatements(page, end, tuple(arguments), end_arguments)


def _conditions(asked: SearchSpans) -> Iterator[tuple[Any, ...]]:
    """Yield each condition with its values; `{}` stands for each of them."""
    job = "EXISTS (SELECT FROM jobs WHERE jobs.trace_id = spans.trace_id AND jobs.tenant = spans.tenant AND jobs."
    if asked.agent is not None:
        yield f"{job}agent = {{}})", asked.agent
    if asked.user_id is not None:
        yield f"{job}user_id = {{}})", asked.user_id
    for column, value in (("service", asked.service), ("name", asked.name), ("status", asked.status)):
        if value is not None:
            yield f"{column} = {{}}", value
    named = {names.GEN_AI_REQUEST_MODEL: asked.model, names.GEN_AI_TOOL_NAME: asked.tool, **asked.attributes}
    for key, value in named.items():
        if value is not None:
            yield "attributes ->> {}::text = {}", key, value
    if asked.seconds_min is not None:
        yield f"{LASTED_MS} >= {{}}::float8", asked.seconds_min * 1_000
    if asked.seconds_max is not None:
        yield f"{LASTED_MS} <= {{}}::float8", asked.seconds_max * 1_000
    if asked.cost_min is not None:
        yield "cost_usd >= {}", asked.cost_min
    if asked.q:
        word = asked.q.strip().lower()
        yield (
            "(strpos(lower(name), {}::text) > 0 OR strpos(lower(attributes::text), {}::text) > 0"
            " OR starts_with(trace_id, {}) OR starts_with(span_id, {}))",
            *(word, orjson.dumps(word).decode()[1:-1], word, word),
        )


def found_span(row: Record) -> FoundSpan:
    """Return a span as it is answered."""
    attributes = orjson.loads(row["attributes"])
    return FoundSpan.model_validate(
        {
            **dict(row),
            "attributes": attributes if isinstance(attributes, dict) else {},
            "usage": orjson.loads(row["usage"]) if row["usage"] else None,
        }
    )


def place_of(row: Record) -> Place:
    """Return where a page ends that has this span as its last."""
    return row["start"], row["trace_id"], row["span_id"]


def cursor(place: Place) -> str:
    """Encode where a page ended."""
    at, *ids = place
    return urlsafe_b64encode(" ".join([at.isoformat(), *ids]).encode()).decode()


def after_cursor(text: str) -> Place:
    """Decode where the next page begins. Raises BadCursor."""
    try:
        at, trace_id, span_id = urlsafe_b64decode(text.encode()).decode().split(" ")
        moment = datetime.fromisoformat(at)
    except (ValueError, NotBase64):
        raise BadCursor(text) from None
    # In UTC, as our own cursors have it: another offset may lead to a year that no table takes.
    if moment.utcoffset() != timedelta(0) or "\x00" in trace_id + span_id:
        raise BadCursor(text)
    return moment, trace_id, span_id
