"""Make the parts of a restored backup one again: the tables are older than the logs, and the queues older than both.

The logs say what is true. What stands in them and nowhere else is made anew: the ticket of every job that goes on, the
settlement of one that has ended, the row of a call that may have had its effect, the reservation of a job that another
one has started. Any other job that the tables do not know began while the backup was taken, and was not in it: its log
goes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from nats.errors import TimeoutError as NatsTimeoutError
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

from wayline.chassis import Bus
from wayline.contracts import events as e
from wayline.contracts.jobs import TURN, RunJob, backlog_of
from wayline.contracts.tools import RUN_AGENT, RUN_CODE, Effect
from wayline.journal import Head, JobLog, State, is_record, last_record, leader_next
from wayline.standalone.backup.fill_queue import fill_queue
from wayline.standalone.errors import BackupFailed
from wayline.standalone.setup.migrations import sql

LOG: Final = "EVENTS"
READ_BATCH: Final = 500
READ_WITHIN_S: Final = 10.0
UNASKED: Final = frozenset({RUN_AGENT, RUN_CODE})
HEARD_AGAIN: Final = frozenset({"approval", "needs_decision", "tool_results"})
"""What a parked job waits for that only signals and their stored ends bring: these are heard again anyway."""

JobKey = tuple[str, str]


@dataclass
class Recovered:
    """What was made anew."""

    tickets: int = 0
    """Of jobs that go on, or have ended and were not settled."""
    lapsed_calls: int = 0
    """Calls that may have had their effect without a row in the ledger."""
    left_out: int = 0
    """Jobs that began while the backup was taken."""
    freed: int = 0
    """Reservations of such jobs."""

    def as_json(self) -> dict[str, int]:
        return asdict(self)


async def recover_jobs(
    bus: Bus, conn: Any, *, logs_before: int, last_ticket: int, nothing_after: bool = False
) -> Recovered:
    """Bring logs, tables and tickets together, while no service runs.

    `logs_before`: the last sequence of the logs before the tables were read; `last_ticket`: of the tickets, at the end
    of the backup; `nothing_after`: no service has run since, so a call without a row has not begun.
    """
    found = Recovered()
    found.left_out = await _leave_out(bus, conn, logs_before)
    unsettled = {(row["tenant"], row["job_id"]) for row in await conn.fetch(sql.jobs_unsettled)}
    heads = await _read_heads(bus, unsettled)
    for tenant, job_id in unsettled - heads.keys():
        await conn.execute(sql.free_reservation, tenant, job_id)
        found.freed += 1
    if not nothing_after:
        for key, head in heads.items():
            if head.state in {State.ACTIVE, State.PARKED}:
                found.lapsed_calls += await _lapse_calls(bus, conn, key)
    found.tickets = await _queue_tickets(bus, heads, last_ticket)
    return found


async def _leave_out(bus: Bus, conn: Any, logs_before: int) -> int:
    """Take away the logs of jobs that the tables do not know, because both began after the tables were read."""
    younger: dict[JobKey, None] = {}
    async for subject, _, _ in _headers(bus, DeliverPolicy.BY_START_SEQUENCE, start=logs_before + 1):
        younger[_key(subject)] = None
    if not younger:
        return 0
    tenants, jobs = zip(*younger, strict=True)
    rows = await conn.fetch(sql.jobs_reserved, list(tenants), list(jobs))
    known = {(row["tenant"], row["job_id"]) for row in rows}
    gone = 0
    for tenant, job_id in (key for key in younger if key not in known):
        subject = f"events.{tenant}.{job_id}"
        first, last = await leader_next(bus, LOG, subject, start=1), await last_record(bus, subject)
        if first is None or first.sequence <= logs_before or last is None:
            continue
        head = Head.read(last.sequence, last.headers, last.body)
        # A job that was refused has reserved nothing.
        if head.state is State.ENDED and head.epoch == 0:
            continue
        if await _reserve_child(bus, conn, tenant, job_id):
            continue
        await bus.js.purge_stream(LOG, subject=subject)
        gone += 1
    return gone


async def _reserve_child(bus: Bus, conn: Any, tenant: str, job_id: str) -> bool:
    """Reserve for a job that another one of the backup has started, and waits for; return whether it is one."""
    events = await JobLog(bus, tenant, job_id).first()
    submitted = next((event for event in events if isinstance(event, e.JobSubmitted)), None)
    routed = next((event for event in events if isinstance(event, e.JobRouted)), None)
    if submitted is None or submitted.parent is None or routed is None:
        return False
    row = (submitted.job.agent, submitted.job.user_id, routed.limits.budget_usd, submitted.at)
    version = (routed.agent_version, routed.agent_label)
    return await conn.fetchval(sql.reserve_child, tenant, job_id, *row, *version, submitted.parent.job_id) is not None


async def _read_heads(bus: Bus, unsettled: set[JobKey]) -> dict[JobKey, Head]:
    """Read the last record of every log: of the jobs that go on, and of those that have ended and are not settled."""
    heads: dict[JobKey, Head] = {}
    async for subject, sequence, headers in _headers(bus, DeliverPolicy.LAST_PER_SUBJECT):
        key = _key(subject)
        if is_record(headers):
            head = Head.read(sequence, headers, b"")
        else:
            record = await last_record(bus, subject)
            if record is None:
                continue
            head = Head.read(record.sequence, record.headers, record.body)
        if head.state is not State.ENDED or key in unsettled:
            heads[key] = head
    return heads


async def _lapse_calls(bus: Bus, conn: Any, key: JobKey) -> int:
    """Give each open call of a job a row in the ledger whose holder is gone; returns how many had none."""
    tenant, job_id = key
    asked: dict[tuple[int, str], e.ToolRequested] = {}
    async for event in JobLog(bus, tenant, job_id).read():
        if isinstance(event, e.ToolRequested):
            # A read may run again, and no registry is asked for programs, children and tools of the job's caller.
            if event.effect is not Effect.READ and event.expires_at is None and event.tool not in UNASKED:
                asked[event.step, event.call] = event
        elif isinstance(event, e.ToolCompleted):
            asked.pop((event.step, event.call), None)
    made = 0
    for call in asked.values():
        made += bool(await conn.fetchval(sql.lapse_call, tenant, call.key, job_id, call.tool, call.effect))
    return made


async def _queue_tickets(bus: Bus, heads: Mapping[JobKey, Head], last_ticket: int) -> int:
    """Queue a ticket for every job that one may bring further; returns how many.

    A job at work lives on the ticket that its log names by its place in the queue: where the queue's snapshot does not
    have it, it is put at that place again, before the queue goes on.
    """
    held = {head.owner_ticket: key for key, head in heads.items() if head.state is State.ACTIVE}
    placed = {at: _ticket(key, heads[key]) for at, key in held.items()}
    made = await fill_queue(bus, "RUN", max([last_ticket, *held]), placed)
    for key, head in heads.items():
        if head.state is State.ACTIVE or not await _may_go_on(bus, key, head, heads):
            continue
        ticket = _ticket(key, head)
        await bus.publish(ticket, msg_id=ticket.msg_id)
        made += 1
    return made


async def _may_go_on(bus: Bus, key: JobKey, head: Head, heads: Mapping[JobKey, Head]) -> bool:
    """Return whether a job that no executor holds may be looked at; one that waits for its turn: once that has come."""
    if head.state is not State.PARKED:
        return True
    record = await last_record(bus, f"events.{key[0]}.{key[1]}")
    last = None if record is None else Head.read(record.sequence, record.headers, record.body).values[-1]
    if last is None or last["type"] != "job.parked":
        return True
    waiting = last["waiting"]
    if waiting["why"] in HEARD_AGAIN:
        return False
    before = heads.get((key[0], waiting.get("after") or ""))
    return waiting["why"] != TURN or before is None or before.state is State.ENDED


def _ticket(key: JobKey, head: Head) -> RunJob:
    return RunJob(tenant=key[0], lane=backlog_of(head.lane), job=key[1], at=head.sequence)


def _key(subject: str) -> JobKey:
    _, tenant, job_id = subject.split(".")
    return tenant, job_id


async def _headers(
    bus: Bus, policy: DeliverPolicy, *, start: int | None = None
) -> AsyncIterator[tuple[str, int, Mapping[str, str]]]:
    """Yield subject, sequence and headers of messages of the logs, without their bodies. Raises BackupFailed."""
    config = ConsumerConfig(
        deliver_policy=policy,
        opt_start_seq=start,
        ack_policy=AckPolicy.NONE,
        headers_only=True,
        filter_subject="events.*.*",
        mem_storage=True,
        num_replicas=1,
        inactive_threshold=60.0,
    )
    subscription = await bus.js.pull_subscribe("events.*.*", stream=LOG, config=config)
    try:
        left = (await subscription.consumer_info()).num_pending or 0
        while left > 0:
            try:
                messages: Iterable[Any] = await subscription.fetch(min(left, READ_BATCH), timeout=READ_WITHIN_S)
            except NatsTimeoutError:
                # What a log says decides what goes: one that was not read is not one that is not there.
                raise BackupFailed(f"the bus left out {left} of the logs' messages: restore again.") from None
            for message in messages:
                left -= 1
                yield message.subject, message.metadata.sequence.stream, message.headers or {}
    finally:
        await subscription.unsubscribe()
