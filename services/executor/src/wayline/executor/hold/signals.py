"""What outsiders say to a held job, and what that means for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import structlog
from nats.aio.msg import Msg

from wayline.chassis import Bus
from wayline.chassis.claim_check.claims import PayloadMissing
from wayline.contracts.chat import UserMessage
from wayline.contracts.errors import InvalidMessage
from wayline.contracts.events import ApprovalDecided, BudgetRaised, CancelRequested, DecisionMade, SessionSteered
from wayline.contracts.jobs import (
    Answer,
    Cancel,
    DecideApproval,
    Expire,
    RaiseBudget,
    Signal,
    Steer,
    ToolResults,
)
from wayline.executor.hold.log_writer import Draft, LogWriter
from wayline.executor.hold.steering import known_speakers, read_words
from wayline.journal import Job, bulk_read, leader_read

log = structlog.get_logger()


SIGNALLED = ("signals.*.*", "approvals.*.*")
"""Where the signals of all jobs come in, for the hints."""
KINDS: dict[str, type[Signal | DecideApproval]] = {"signals": Signal, "approvals": DecideApproval}
"""What is read on which subjects of a job: a signaller may not approve, so neither kind is believed on the other's."""
Judge = Callable[[Job, DecideApproval, datetime], Draft | str | None]
"""Returns what a decision of a time means for an approval, or what is wrong with it; None: nothing."""
EndCalls = Callable[[Job, ToolResults | Expire], Sequence[Draft]]
"""Returns the ends of the calls of the caller's own tools that it has given results of, or whose time is over."""


class Meanings(NamedTuple):
    """What signals mean that only the rules of a job can tell."""

    judge: Judge
    end_calls: EndCalls


async def newest(bus: Bus, tenant: str, job_id: str) -> int:
    """Return the stream sequence of a job's last signal of any kind, 0 when it has none; a leader read."""
    last = await leader_read(bus, "SIGNALS", f"*.{tenant}.{job_id}")
    return last.sequence if last else 0


async def hear(bus: Bus, tenant: str, job_id: str, writer: LogWriter, upto: int, *, meanings: Meanings) -> None:
    """Note what every signal after `signals_seen` means; one that means nothing is passed over and counts as seen.

    In one batch a cancel wins, whatever came before it; everything else is first come, first served.
    """
    heard: list[tuple[int, Msg, Signal | DecideApproval]] = []
    for name, kind in KINDS.items():
        subject = f"{name}.{tenant}.{job_id}"
        last = await leader_read(bus, "SIGNALS", subject)
        end = min(upto, last.sequence) if last else 0
        if end <= writer.signals_seen:
            continue
        async for message in bulk_read(bus, "SIGNALS", subject, after=writer.signals_seen, upto=end):
            try:
                read = await bus.read(kind, message, subject)
            except (InvalidMessage, PayloadMissing):
                # The router puts a copy aside; to the job it means nothing. A sender's payload is there before its
                # signal.
                continue
            heard.append((int((message.headers or {})["Nats-Sequence"]), message, read))
    heard.sort(key=lambda one: (not _is_cancel(one[2]), one[0]))
    # Before anything is noted: these are reads that may fail, and then all of it is heard again.
    words = await read_words(bus, writer.job, (by for _, _, signal in heard for by in _later_jobs(signal)))
    for _, message, signal in heard:
        if isinstance(signal, DecideApproval):
            _note_approval(writer, meanings.judge(writer.job, signal, _stored_at(message)))
        else:
            _note(writer, signal, words, meanings.end_calls)
    writer.signals_seen = max(writer.signals_seen, upto)


def _later_jobs(heard: Signal | DecideApproval) -> tuple[str, ...]:
    """Return the job that a signal says to have words."""
    return (heard.signal.by,) if isinstance(heard, Signal) and isinstance(heard.signal, Steer) else ()


def _is_cancel(heard: Signal | DecideApproval) -> bool:
    return isinstance(heard, Signal) and isinstance(heard.signal, Cancel)


def _stored_at(message: Msg) -> datetime:
    """Return when the bus took a message, whenever we come to read it."""
    return datetime.fromisoformat((message.headers or {})["Nats-Time-Stamp"][:19]).replace(tzinfo=UTC)


def _note(writer: LogWriter, heard: Signal, words: dict[str, UserMessage], end_calls: EndCalls) -> None:
    signal, job = heard.signal, writer.job
    if isinstance(signal, Cancel):
        if job.life.cancel is None:
            writer.note(CancelRequested, reason=signal.reason, by=signal.by)
    elif isinstance(signal, RaiseBudget):
        if signal.budget_usd is not None:
            writer.note(BudgetRaised, budget_usd=signal.budget_usd, by=signal.by)
    elif isinstance(signal, Steer):
        # Two who listen beside each other may hear the same.
        if signal.by in words and signal.by not in known_speakers(job):
            writer.note(SessionSteered, by=signal.by, message=words[signal.by])
    elif isinstance(signal, ToolResults):
        writer.note_all(end_calls(job, signal))
    elif isinstance(signal, Expire) and (late := end_calls(job, signal)):
        writer.note_all(late)
    else:
        _note_decision(writer, signal)


def _note_decision(writer: LogWriter, signal: Answer | Expire) -> None:
    asked = signal.decision_id if isinstance(signal, Answer) else signal.wait_id
    waited = writer.job.life.waited
    own = waited is not None and waited.why in ("budget", "children") and waited.wait_id == asked
    if isinstance(signal, Expire) and own:
        writer.note(DecisionMade, decision_id=asked, outcome="expired")
        return
    if isinstance(signal, Expire) and any(one.approval_id == asked for one in writer.job.tools.pending):
        writer.note(ApprovalDecided, approval_id=asked, decision="expired")
        return
    calls = (*writer.job.tools.calls, *writer.job.code.program_calls)
    if not any(call.undecided and call.decision_id == asked for call in calls):
        return
    if isinstance(signal, Answer):
        writer.note(DecisionMade, decision_id=asked, outcome=signal.outcome, content=signal.content, by=signal.by)
    else:
        writer.note(DecisionMade, decision_id=asked, outcome="expired")


def _note_approval(writer: LogWriter, judged: Draft | str | None) -> None:
    """Note the first decision on an approval that waits; what cannot be one leaves it waiting."""
    if isinstance(judged, str):
        log.warning("a decision on an approval does not count", job=writer.job.job_id, problem=judged)
    elif judged is not None:
        writer.note_all([judged])
