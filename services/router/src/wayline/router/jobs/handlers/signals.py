"""Wakes parked jobs that have something new to read."""

from __future__ import annotations

from wayline.chassis import Bus, Delivery, Failpoint, reach
from wayline.contracts.base import Message
from wayline.contracts.errors import Reject
from wayline.contracts.jobs import (
    Cancel,
    DecideApproval,
    Due,
    Expire,
    JobWoken,
    RaiseBudget,
    Signal,
    Steer,
    ToolResults,
    WakeJob,
)
from wayline.journal import JobLog, State
from wayline.router.jobs.approvals import Approvals
from wayline.router.jobs.families import Families
from wayline.router.jobs.parked_signals import ParkedSignals, wakes
from wayline.router.jobs.tool_results import ClientResults
from wayline.router.money.budget_table import BudgetTable
from wayline.router.tenants.signal_share import SignalShare


class SignalHandlers:
    """Answers signals, decisions on approvals, the ends of waits, and executors that wake a job."""

    def __init__(
        self,
        bus: Bus,
        budgets: BudgetTable,
        *,
        families: Families,
        signal_share: SignalShare,
        approvals: Approvals,
        parked_signals: ParkedSignals,
        client_results: ClientResults,
    ) -> None:
        self._client_results = client_results
        self._bus = bus
        self._budgets = budgets
        self._families = families
        self._signal_share = signal_share
        self._approvals = approvals
        self._parked_signals = parked_signals

    async def on_signal(self, heard: Signal, delivery: Delivery) -> list[Message]:
        """Queue a parked job that has something new to read; a running job reads it by itself.

        Raises Reject for results of tools that cannot count.
        """
        self._signal_share.note(heard.tenant)
        if isinstance(heard.signal, Steer):
            # A parked job hears it when something else lets it go on.
            return []
        if isinstance(heard.signal, ToolResults):
            about = {"tenant": heard.tenant, "job_id": heard.job_id}
            await self._client_results.require_usable(heard.signal, **about, delivery=delivery)
        if isinstance(heard.signal, RaiseBudget) and heard.signal.budget_usd is not None:
            # Before the job is woken: it will ask at once.
            await self._budgets.raise_cap(heard.tenant, heard.job_id, heard.signal.budget_usd)
        if isinstance(heard.signal, Cancel):
            await self._families.cancel_children(heard.tenant, heard.job_id)
        return await self._wake(heard.tenant, heard.job_id, delivery, early=isinstance(heard.signal, Cancel))

    async def on_decide_approval(self, decided: DecideApproval, delivery: Delivery) -> list[Message]:
        """Queue a parked job for which a decision on an approval has come. Raises Reject for what can be none."""
        self._signal_share.note(decided.tenant)
        wrong = await self._approvals.problem(decided)
        if wrong is not None:
            raise Reject(wrong, code="invalid_arguments", status=422)
        return await self._wake(decided.tenant, decided.job_id, delivery)

    async def _wake(self, tenant: str, job_id: str, delivery: Delivery, *, early: bool = False) -> list[Message]:
        """Return the ticket of a job that is parked and has not seen this signal; `early`: also before its turn.

        A job without a log, or one that runs, is not woken: the process that parks it looks for signals afterwards.
        """
        head = await JobLog(self._bus, tenant, job_id).last()
        if head is None or not wakes(head, delivery.sequence, early=early):
            return []
        reach(Failpoint.ROUTER_WAKE_BEFORE)
        return [await self._parked_signals.queue(tenant, job_id, lane=head.lane, at=head.sequence)]

    async def on_wake(self, asked: WakeJob) -> JobWoken:
        """Queue a job of which its executor found, after it had parked it, that it has something to read."""
        ticket = await self._parked_signals.queue(asked.tenant, asked.job_id, lane=asked.lane, at=asked.at)
        await self._bus.publish(ticket, msg_id=ticket.msg_id)
        return JobWoken()

    async def on_due(self, due: Due, _: Delivery) -> list[Message]:
        """Turn the end of a wait into a signal like any other; a job that has ended or has no log needs none."""
        head = await JobLog(self._bus, due.tenant, due.job_id).last()
        if head is None or head.state is State.ENDED:
            return []
        reach(Failpoint.ROUTER_EXPIRE_BEFORE)
        return [Signal(tenant=due.tenant, job_id=due.job_id, signal=Expire(wait_id=due.wait_id))]
