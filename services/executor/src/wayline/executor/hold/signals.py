"""What outsiders say to a held job, and what that means for it."""

from __future__ import annotations

from wayline.chassis import Bus
from wayline.chassis.claims import PayloadMissing
from wayline.contracts.errors import InvalidMessage
from wayline.contracts.events import BudgetRaised, CancelRequested, DecisionMade
from wayline.contracts.jobs import Answer, Cancel, Expire, RaiseBudget, Signal
from wayline.executor.hold.log_writer import LogWriter
from wayline.journal import bulk_read, leader_read


async def newest(bus: Bus, tenant: str, job_id: str) -> int:
    """Return the stream sequence of a job's last signal, 0 when it has none; a leader read."""
    last = await leader_read(bus, "SIGNALS", f"signals.{tenant}.{job_id}")
    return last.sequence if last else 0


async def hear(bus: Bus, tenant: str, job_id: str, writer: LogWriter, upto: int) -> None:
    """Note what every signal after `signals_seen` means; one that means nothing is passed over and counts as seen.

    In one batch a cancel wins, whatever came before it; everything else is first come, first served.
    """
    heard: list[Signal] = []
    subject = f"signals.{tenant}.{job_id}"
    async for message in bulk_read(bus, "SIGNALS", subject, after=writer.signals_seen, upto=upto):
        try:
            heard.append(await bus.read(Signal, message, subject))
        except (InvalidMessage, PayloadMissing):
            # The router puts a copy aside; to the job it means nothing. A sender's payload is there before its signal.
            continue
    heard.sort(key=lambda one: not isinstance(one.signal, Cancel))
    for signal in heard:
        _note(writer, signal)
    writer.signals_seen = max(writer.signals_seen, upto)


def _note(writer: LogWriter, heard: Signal) -> None:
    signal, job = heard.signal, writer.job
    if isinstance(signal, Cancel):
        if job.life.cancel is None:
            writer.note(CancelRequested, reason=signal.reason, by=signal.by)
    elif isinstance(signal, RaiseBudget):
        if signal.budget_usd is not None:
            writer.note(BudgetRaised, budget_usd=signal.budget_usd, by=signal.by)
    else:
        _note_decision(writer, signal)


def _note_decision(writer: LogWriter, signal: Answer | Expire) -> None:
    asked = signal.decision_id if isinstance(signal, Answer) else signal.wait_id
    waited = writer.job.life.waited
    if isinstance(signal, Expire) and waited is not None and waited.why == "budget" and waited.wait_id == asked:
        writer.note(DecisionMade, decision_id=asked, outcome="expired")
        return
    if not any(call.undecided and call.decision_id == asked for call in writer.job.tools.calls):
        return
    if isinstance(signal, Answer):
        writer.note(DecisionMade, decision_id=asked, outcome=signal.outcome, content=signal.content, by=signal.by)
    else:
        writer.note(DecisionMade, decision_id=asked, outcome="expired")
