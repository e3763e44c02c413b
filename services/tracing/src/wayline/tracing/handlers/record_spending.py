"""Records paid calls outside of any job in the ledger: the service that makes one reports it, as no log has it."""

from __future__ import annotations

from wayline.contracts.money import usd
from wayline.contracts.traces import Recorded, RecordSpending, Spending
from wayline.tracing.rows import LedgerRow, Rows, clean
from wayline.tracing.tables import Tables

NO_JOB, NO_AGENT = "(none)", "-"
"""No job and no agent can have these names."""
UNSETTLED, SETTLED = 1, 2
"""Versions of an entry: what a call cost takes the place of what it may have cost, and then never changes."""


class SpendingRecorder:
    """Writes reported spending into the ledger."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def on_record(self, asked: RecordSpending) -> Recorded:
        """Put the entries into the ledger; one that is there stays, but for a call whose cost is known by now."""
        await self._tables.write(Rows(ledger=[_row(asked.tenant, entry) for entry in asked.entries]))
        return Recorded(entries=len(asked.entries))


def _row(tenant: str, entry: Spending) -> LedgerRow:
    bounds = entry.unsettled
    tool = entry.model if entry.purpose == "tool" else None
    return LedgerRow(
        tenant=tenant,
        job_id=NO_JOB,
        attempt_id=clean(entry.attempt_id),
        seq=SETTLED if bounds is None else UNSETTLED,
        step=0,
        kind="aux" if tool is None else "tool",
        provider=clean(entry.provider),
        model=clean(entry.model),
        tool=None if tool is None else clean(tool),
        agent=NO_AGENT,
        user_id=None,
        session_id=None,
        input_tokens=entry.input_tokens,
        cache_read_tokens=0,
        cache_write_5m_tokens=0,
        cache_write_1h_tokens=0,
        output_tokens=0,
        reasoning_tokens=0,
        cost_usd=None if entry.cost_usd is None else usd(entry.cost_usd),
        open=False,
        settled=bounds is None,
        at=entry.at,
        purpose=entry.purpose if tool is None else None,
        saved_usd=None,
        lower_usd=bounds.lower_usd if bounds else None,
        upper_usd=bounds.upper_usd if bounds else None,
    )
