"""Makes the tables anew from the log.

Jobs, steps, the ledger and the spans that are made from the log come back with the same ids and the same totals. Leaf
spans were only ever in telemetry: those in the tables stay, those that are gone do not come back.
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from wayline.chassis import Bus
from wayline.journal import bulk_read
from wayline.store import Store
from wayline.tracing.adapters.tables import Tables
from wayline.tracing.errors import NotARecord
from wayline.tracing.owners import Owners
from wayline.tracing.projecting import Projector, Record, parse

log = structlog.get_logger()

EVERY_RECORD = "events.*.*"
RECORDS_A_WRITE = 500
STORIES_MAX = 20_000


@dataclass(frozen=True)
class Rebuilt:
    """How many records were read, and how many could not be."""

    records: int
    unreadable: int


async def rebuild(bus: Bus, store: Store, *, spans_days: int) -> Rebuilt:
    """Empty what was made from the log and read the log from its beginning.

    A tracing service may run meanwhile: whichever of the two writes a row later, the newer picture of it stays.
    """
    tables = Tables(store, spans_days=spans_days)
    await tables.keep_spans()
    await tables.empty()
    # Asked after that: what is stored from here on, a tracing service that runs meanwhile adds to the emptied tables.
    stored = (await bus.js.stream_info("EVENTS")).state
    # A stream whose records are all too old still tells the number of the last one.
    upto = stored.last_seq if stored.messages else None
    projector = Projector(bus, tables, Owners(tables), stories_max=STORIES_MAX)
    records, unreadable = 0, 0
    batch: list[Record] = []
    async for message in bulk_read(bus, "EVENTS", EVERY_RECORD, upto=upto):
        headers = message.headers or {}
        subject, sequence = headers["Nats-Subject"], int(headers["Nats-Sequence"])
        try:
            batch.append(parse(subject, sequence, await projector.body(message)))
        except NotARecord as error:
            unreadable += 1
            log.warning("passing over a record", subject=subject, sequence=sequence, why=str(error))
        if len(batch) >= RECORDS_A_WRITE:
            await projector.store(batch)
            records, batch = records + len(batch), []
    if batch:
        await projector.store(batch)
        records += len(batch)
    return Rebuilt(records=records, unreadable=unreadable)
