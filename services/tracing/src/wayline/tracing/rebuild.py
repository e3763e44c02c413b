"""Makes the tables anew from the log.

Jobs, steps, the ledger and the spans that are made from the log come back with the same ids and the same totals. Leaf
spans were only ever in telemetry: those in the tables stay, those that are gone do not come back. A job whose log has
lost its beginning keeps its rows: logs are kept for 30 days, money for 400.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import orjson

from wayline.chassis import Bus
from wayline.contracts import ids
from wayline.store import Store
from wayline.tracing.adapters.tables import PostgresTables
from wayline.tracing.consume.projector import Projector
from wayline.tracing.consume.trace_tenants import TraceTenants
from wayline.tracing.tables import Key

EVERY_RECORD = "events.*.*"
LIST_S = 30.0
"""How long the bus may take to list a page of logs."""


@dataclass(frozen=True)
class Rebuilt:
    """How many records were read, how many could not be, and how many jobs were left as they are."""

    records: int
    unreadable: int
    kept: int = 0


async def rebuild(bus: Bus, store: Store, *, spans_days: int) -> Rebuilt:
    """Make each job that is whole in the log again, one after the other.

    A tracing service may run meanwhile: whichever of the two writes a row later, the newer picture of it stays.
    """
    tables = PostgresTables(store, spans_days=spans_days)
    await tables.keep_spans()
    projector = Projector(bus, tables, TraceTenants(tables), jobs_max=0)
    records, unreadable, kept = 0, 0, 0
    async for key in _jobs(bus):
        read = await projector.rebuild(key)
        records, unreadable, kept = records + read.records, unreadable + read.unreadable, kept + read.kept
    return Rebuilt(records=records, unreadable=unreadable, kept=kept)


async def _jobs(bus: Bus) -> AsyncIterator[Key]:
    """Yield every job that has a log, in the order of the server's pages."""
    seen = 0
    while True:
        request = orjson.dumps({"subjects_filter": EVERY_RECORD, "offset": seen})
        answer = await bus.request(f"{bus.api}.STREAM.INFO.EVENTS", request, timeout_s=LIST_S)
        info = orjson.loads(answer.data)
        subjects = info["state"].get("subjects") or {}
        for subject in subjects:
            _, tenant, job_id = subject.split(".")
            if ids.is_tenant(tenant):
                yield tenant, job_id
        seen += len(subjects)
        if not subjects or seen >= info.get("total", 0):
            return
