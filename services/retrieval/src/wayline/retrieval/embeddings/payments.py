"""Paid calls of the embedding provider: written down before they are made, held, and reported once they have ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import groupby
from uuid import uuid4

from wayline.chassis import Bus, Periodic
from wayline.chassis.concurrency.each_alone import each_alone
from wayline.chassis.concurrency.work_watch import LOOK_ANYWAY_S
from wayline.contracts.budgets import ChargeBudgets, Extended, HoldCharge, Settled
from wayline.contracts.events import Bounds
from wayline.contracts.money import cost_sum
from wayline.contracts.traces import SPENDINGS_MAX, Recorded, RecordSpending, Spending
from wayline.retrieval.embeddings.embedding_payments import PaidCall, Price
from wayline.retrieval.errors import NoBudget
from wayline.store import Record, Store

PURPOSE = "embedding"
OPEN_MAX_S = 900.0
"""A call takes minutes at most: one that is open for longer has lost its process."""
REPORT_EVERY_S = 2.0
LEFT_TO_CALLER_S = 120.0
"""A search that its caller pays for takes its calls over within this time, or they are reported here."""
ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Payments:
    """The paid calls of this service."""

    store: Store
    bus: Bus
    provider: str
    model: str
    """The settings' one."""
    price: Callable[[str], Price]
    """Returns what a model costs."""

    def account(
        self, tenant: str, *, holds: bool, model: str | None = None, caller_pays: bool = False
    ) -> TenantAccount | None:
        """Return what pays for a tenant's calls; None where they cost nothing."""
        model = model or self.model
        price = self.price(model)
        return None if price.free else TenantAccount(self, tenant, model, price, holds=holds, caller_pays=caller_pays)

    async def report(self) -> int:
        """Report calls that have ended to tracing and to the router, and forget them; returns how many were reported.

        What cannot be reported of one tenant is left for later, and holds up no other's.
        """
        async with self.store.system() as conn:
            rows = await conn.fetch(self.store.sql.embeddings_to_report, OPEN_MAX_S, SPENDINGS_MAX)
        reported: list[int] = []

        async def report(calls: list[Record]) -> None:
            await self._report(calls[0]["tenant"], calls)
            reported.append(len(calls))

        of_tenants = [list(calls) for _, calls in groupby(rows, key=lambda row: row["tenant"])]
        await each_alone("report of embedding costs", of_tenants, report)
        return sum(reported)

    async def _report(self, tenant: str, calls: list[Record]) -> None:
        # Both know a call by its id, so that saying one again changes nothing.
        entries = tuple(self._entry(call) for call in calls if call["state"] != "refused")
        if entries:
            await self.bus.ask(RecordSpending(tenant=tenant, entries=entries), Recorded)
        for call in calls:
            await self.bus.ask(_charge(tenant, call), Settled)
        await self.store.execute(
            tenant, self.store.sql.forget_embeddings, tenant, [call["charge_id"] for call in calls]
        )

    def _entry(self, call: Record) -> Spending:
        known = call["state"] == "answered"
        lower = None if call["worst_usd"] is None else ZERO
        return Spending(
            attempt_id=attempt_id(call["tenant"], call["charge_id"]),
            purpose=PURPOSE,
            provider=self.provider,
            model=call["model"],
            input_tokens=call["input_tokens"],
            cost_usd=call["cost_usd"] if known else None,
            unsettled=None if known else Bounds(lower_usd=lower, upper_usd=call["worst_usd"]),
            at=call["at"],
        )


@dataclass(slots=True)
class TenantAccount:
    """The calls for one document or one query of a tenant."""

    payments: Payments
    tenant: str
    model: str
    price: Price
    holds: bool = field(kw_only=True)
    caller_pays: bool = field(kw_only=True)
    _made: list[tuple[str, Decimal | None]] = field(default_factory=list)

    @asynccontextmanager
    async def paying(self, texts: Sequence[str]) -> AsyncGenerator[PaidCall]:
        """Write a call down, hold its worst case, and note how it ended. Raises NoBudget, and Retry."""
        store = self.payments.store
        charge_id, worst_usd = f"{PURPOSE}/{uuid4().hex}", self.price.worst(texts)
        await store.execute(self.tenant, store.sql.begin_embedding, self.tenant, charge_id, self.model, worst_usd)
        call = PaidCall(charge_id, attempt_id(self.tenant, charge_id))
        try:
            await self._hold(call, worst_usd)
            yield call
        finally:
            # A process that ends here leaves the row open, and another one reports it.
            cost_usd = self.price.of(call.input_tokens) if call.outcome == "answered" else None
            self._made.append((charge_id, ZERO if call.outcome == "refused" else cost_usd))
            await asyncio.shield(self._end(call, cost_usd))

    async def hand_over(self) -> Decimal | None:
        """Leave the report of what was paid to the caller; returns the sum, None where it stays here."""
        store, made, self.caller_pays = self.payments.store, dict(self._made), False
        if cost_sum(list(made.values())) is None:
            await store.execute(self.tenant, store.sql.report_embeddings_now, self.tenant, list(made))
            return None
        rows = await store.fetch(self.tenant, store.sql.hand_over_embeddings, self.tenant, list(made))
        taken = [made[row["charge_id"]] for row in rows]
        # After a search that took too long they are reported here.
        return cost_sum(taken) if taken or not made else None

    async def _hold(self, call: PaidCall, worst_usd: Decimal | None) -> None:
        if not self.holds:
            return
        call.refused()  # Until it is made.
        asked = HoldCharge(tenant=self.tenant, charge_id=call.charge_id, usd=worst_usd)
        answer = await self.payments.bus.ask(asked, Extended)
        if not answer.granted:
            raise NoBudget(budget=answer.limited_by, worst_usd=worst_usd, model=self.model)
        call.outcome = "lost"

    async def _end(self, call: PaidCall, cost_usd: Decimal | None) -> None:
        store = self.payments.store
        left_s = LEFT_TO_CALLER_S if self.caller_pays else 0.0
        row = (self.tenant, call.charge_id, call.outcome, call.input_tokens, cost_usd, left_s)
        await store.execute(self.tenant, store.sql.end_embedding, *row)


class Reporter:
    """Reports what was paid, soon after there is something to report."""

    def __init__(self, payments: Payments) -> None:
        self._payments = payments
        self._periodic = Periodic("reports of embedding costs", self._report, every_s=LOOK_ANYWAY_S)
        self.stop = self._periodic.stop
        self.report_now = self._periodic.now

    async def start(self) -> None:
        await self._periodic.start()

    async def _report(self) -> None:
        if await self._payments.report() == SPENDINGS_MAX:
            # There may be more.
            self._periodic.now()


def attempt_id(tenant: str, charge_id: str) -> str:
    """Return what the provider is told of a call."""
    return f"{tenant}/{charge_id}"


def _charge(tenant: str, call: Record) -> ChargeBudgets:
    key = {"tenant": tenant, "charge_id": call["charge_id"]}
    if call["state"] == "answered":
        return ChargeBudgets(**key, cost_usd=call["cost_usd"])
    lost = call["state"] != "refused"
    return ChargeBudgets(**key, cost_usd=ZERO, unsettled_usd=(call["worst_usd"] or ZERO) if lost else ZERO)
