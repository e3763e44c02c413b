"""Looks every so often for jobs that can go on: those that a budget refused and that would fit now.

Whom to wake is read from the tables, not remembered: so it is the same whether a budget was raised, another job gave
money back or a new window began, and a router that dies in between is followed by one that looks again.
"""

from __future__ import annotations

import structlog

from wayline.chassis import Bus, Periodic
from wayline.chassis.concurrency.each_alone import each_alone
from wayline.chassis.concurrency.work_watch import LOOK_ANYWAY_S
from wayline.contracts.errors import Full
from wayline.contracts.jobs import RaiseBudget, Signal
from wayline.contracts.notices import BudgetAlerted
from wayline.store import Record, Store
from wayline.telemetry import metrics
from wayline.telemetry.bounded_labels import OTHER, BoundedLabels

log = structlog.get_logger()

WAKES_MAX = 1_000
"""Jobs woken at one look; the others are woken at the next."""


class Waker:
    """Wakes jobs that waited for a budget, says what budgets have reached, and shows how much of them is used."""

    def __init__(self, bus: Bus, store: Store, *, every_s: float, labels_max: int, labels_per_tenant_max: int) -> None:
        self._bus = bus
        self._store = store
        self._shown_max = labels_max, labels_per_tenant_max
        self._label = BoundedLabels(most=labels_max, per_tenant_max=labels_per_tenant_max)
        self._periodic = Periodic("budgets", self.look, every_s=max(every_s, LOOK_ANYWAY_S))
        self.start = self._periodic.start
        self.stop = self._periodic.stop
        self.look_now = self._periodic.now

    async def look(self) -> None:
        """Wake who can go on, and tell what budgets have reached."""
        await self.wake()
        await self.tell()

    async def wake(self) -> int:
        """Signal every job that would fit; returns how many."""
        async with self._store.system() as conn:
            waiting = await conn.fetch(self._store.sql.wakeable, None, WAKES_MAX)
        woken: list[str] = []

        async def wake(row: Record) -> None:
            try:
                await self._signal(row)
            except Full as error:
                # A job takes a limited number of signals; the jobs behind it do not wait for it.
                log.warning("put off", what="wake-up", tenant=row["tenant"], job=row["job_id"], why=str(error))
                return
            # Only after the signal is stored: after a crash in between the same signal is sent again.
            await self._woken(row)
            woken.append(row["job_id"])

        await each_alone("wake-up", waiting, wake, mark=lambda row, _: self._woken(row))
        return len(woken)

    async def _woken(self, row: Record) -> None:
        await self._store.execute(
            row["tenant"], self._store.sql.woken, row["tenant"], row["job_id"], row["waits_since"]
        )

    async def _signal(self, row: Record) -> None:
        tenant, job_id, since = row["tenant"], row["job_id"], row["waits_since"]
        signal = Signal(tenant=tenant, job_id=job_id, signal=RaiseBudget(by="router"))
        await self._bus.publish(signal, msg_id=f"{tenant}/{job_id}:budget:{since.timestamp()}")

    async def tell(self) -> None:
        """Log and count each alert once, whichever router finds it, and show how much is used."""
        async with self._store.system() as conn:
            untold = await conn.fetch(self._store.sql.untold_alerts)
        for alert in untold:
            # Before it counts as told: after a crash in between the same notice is published again.
            notice = BudgetAlerted.model_validate(dict(alert))
            await self._bus.publish(notice, msg_id=notice.msg_id)
        async with self._store.system() as conn:
            alerts = await conn.fetch(self._store.sql.tell_alerts, *_columns(untold)) if untold else []
            used = await conn.fetch(self._store.sql.use_of_budgets, *self._shown_max)
        for alert in alerts:
            shown = self._label(f"{alert['tenant']} {alert['budget']}", alert["tenant"]) != OTHER
            metrics.budget_alerts.labels(*((alert["tenant"], alert["budget"]) if shown else (OTHER, OTHER))).inc()
            log.warning(
                "a budget is nearly used up",
                tenant=alert["tenant"],
                budget=alert["budget"],
                reached=f"{alert['threshold']:.0%}",
                used_usd=str(alert["used_usd"]),
                limit_usd=str(alert["limit_usd"]),
            )
        metrics.budgets_unshown.set(used[0]["budgets"] - len(used) if used else 0)
        metrics.budget_usd.clear()
        for row in used:
            for figure in ("limit", "spent", "reserved", "unsettled"):
                metrics.budget_usd.labels(row["tenant"], row["budget"], figure).set(row[figure])


def _columns(alerts: list[Record]) -> tuple[list[object], ...]:
    return tuple([alert[key] for alert in alerts] for key in ("tenant", "budget", "starts_at", "threshold"))
