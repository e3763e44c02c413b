"""Spans that a tenant's own programs sent: stored as that tenant's, and joined to the trees of its jobs."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

import orjson

from wayline.contracts import ids
from wayline.contracts.received_spans import ReceiveSpans, SpansReceived
from wayline.telemetry import names
from wayline.tracing.consume.exported_spans import read_spans
from wayline.tracing.consume.trace_tenants import TraceTenants
from wayline.tracing.errors import NotSpans
from wayline.tracing.rows import SpanRow, as_json

AHEAD_MAX = timedelta(days=1)
"""How far a program's clock may be ahead."""
OURS = "wayline."
"""How the names of attributes begin that only our own services give a meaning."""
OUR_SERVICES = frozenset(
    ("gateway", "router", "executor", "retrieval", "tool-registry", "tracing", "notifier", "console", "standalone")
)
JOB_ID = re.compile(ids.JOB_ID_PATTERN)
TOO_OLD = "began before spans are kept, or in the future"
OVER = "the tenant's spans of this hour are used up"


class Join(NamedTuple):
    """A trace of a program that belongs into the tree of a job, under one of that job's spans."""

    joins: str
    trace_id: str
    under: str


class ReceivedTable(Protocol):
    """Where received spans and their joins are kept."""

    async def receive(
        self, tenant: str, spans: Sequence[SpanRow], joins: Iterable[Join], *, hourly_max: int
    ) -> int: ...


class SpanReceiver:
    """Takes spans that strangers wrote: nothing in them says whose they are, what a call cost, or what we did."""

    def __init__(self, table: ReceivedTable, trace_tenants: TraceTenants, *, spans_days: int, hourly_max: int) -> None:
        self._table = table
        self._trace_tenants = trace_tenants
        self._keep = timedelta(days=spans_days)
        self._hourly_max = hourly_max

    async def on_receive(self, asked: ReceiveSpans) -> SpansReceived:
        """Store the spans that can be, before this returns. Raises NotSpans."""
        try:
            read = read_spans(b64decode(asked.otlp, validate=True))
        except NotBase64:
            raise NotSpans from None
        rows = [_theirs(row, asked.tenant) for row in read]
        now = datetime.now(UTC)
        timely = [row for row in rows if now - self._keep <= row.start <= now + AHEAD_MAX]
        linked = {link["trace_id"] for row in timely for link in _links(row)}
        tenants = await self._trace_tenants.find(linked) if linked else {}
        own = {trace_id for trace_id in linked if tenants.get(trace_id) == asked.tenant}
        joins = {join for row in timely for join in _joins(row, own)}
        stored = await self._table.receive(asked.tenant, timely, sorted(joins), hourly_max=self._hourly_max)
        rejected = len(rows) - stored
        late, over = len(timely) < len(rows), stored < len(timely)
        reason = "; ".join(why for why, is_so in ((TOO_OLD, late), (OVER, over)) if is_so)
        return SpansReceived(stored=stored, rejected=rejected, reason=reason)


def _theirs(row: SpanRow, tenant: str) -> SpanRow:
    """Return a span as a stranger's: of the key's tenant, without a cost, without attributes that are ours to set."""
    attributes = orjson.loads(row.attributes or "{}")
    kept = {key: value for key, value in attributes.items() if not key.startswith(OURS) or key == names.JOB}
    service = f"their {row.service}" if row.service in OUR_SERVICES else row.service
    return row._replace(tenant=tenant, service=service, attributes=as_json(kept), cost_usd=None)


def _links(row: SpanRow) -> list[dict[str, str]]:
    return orjson.loads(row.links) if row.links else []


def _joins(row: SpanRow, own: set[str]) -> Iterator[Join]:
    """Yield the trees that a span's trace belongs into: of the job that it names, and of jobs that it links to."""
    job_id = orjson.loads(row.attributes or "{}").get(names.JOB)
    found = [(link["trace_id"], link["span_id"]) for link in _links(row) if link["trace_id"] in own]
    if isinstance(job_id, str) and JOB_ID.match(job_id):
        found.append((ids.trace_id(row.tenant, job_id), ids.job_span(row.tenant, job_id)))
    for joins, under in found:
        if joins != row.trace_id:
            yield Join(joins, row.trace_id, under)
