"""One job among executors that die: its log, signals, tickets and the registry's ledger in memory.

The executor's own code runs: claim, decide, perform, and the writer of the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from types import SimpleNamespace
from typing import Any

from nats.aio.msg import Msg

from wayline.chassis import Failpoint
from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage, ToolCall
from wayline.contracts.jobs import DecideApproval, Expire, Route, Signal, SubmitJob
from wayline.contracts.money import Usage
from wayline.contracts.tools import (
    CallTool,
    Effect,
    ListTools,
    ResolveTool,
    ToolDefinition,
    ToolError,
    ToolList,
    ToolReply,
    VoidTool,
)
from wayline.executor import run_job
from wayline.executor.adapters import tool_registry
from wayline.executor.claim_jobs import JobClaims
from wayline.executor.decide import approvals
from wayline.executor.decide.actions import CallModel
from wayline.executor.decide.approvals import judge_decision
from wayline.executor.decide.client_calls import end_calls
from wayline.executor.hold import log_writer
from wayline.executor.hold.claim import Ticket, Verdict, judge
from wayline.executor.hold.held_job import HeldJob
from wayline.executor.hold.job_heartbeats import Heartbeats
from wayline.executor.hold.signals import Meanings
from wayline.executor.hold.ticket_end import Acked
from wayline.executor.perform.job_run import JobRun
from wayline.executor.perform.tell_model import note_news
from wayline.executor.prompt.notes import silent
from wayline.journal import Fenced, Head, Job, JobLog, State, decode
from wayline.journal.log import Stored

TENANT, JOB_ID = "default", "j1"
SCHEMA = {"type": "object", "properties": {"usd": {"type": "integer"}}, "required": ["usd"]}
STRICTER = {**SCHEMA, "properties": {**SCHEMA["properties"], "to": {"type": "string"}}, "required": ["usd", "to"]}
LOOK = ToolDefinition(name="look", effect=Effect.READ)


def pay(description: str = "", schema: dict[str, Any] = SCHEMA) -> ToolDefinition:
    return ToolDefinition(name="pay", effect=Effect.ONCE, ask="always", description=description, input_schema=schema)


class Killed(BaseException):
    """The process is gone."""


@dataclass(frozen=True)
class Payment:
    """What the tool did."""

    key: str
    digest: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class SentSignal:
    """A signal in its stream."""

    sequence: int
    subject: str
    signal: Signal | DecideApproval
    stored_at: datetime

    @property
    def approval_id(self) -> str:
        if isinstance(self.signal, DecideApproval):
            return self.signal.approval_id
        return self.signal.signal.wait_id if isinstance(self.signal.signal, Expire) else ""

    @property
    def message(self) -> Msg:
        stamp = self.stored_at.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        return Msg(None, headers={"Nats-Sequence": str(self.sequence), "Nats-Time-Stamp": stamp})  # type: ignore[arg-type]


class MemoryLog(JobLog):
    """A job's log in memory; its records are encoded as on the bus."""

    def __init__(self) -> None:
        super().__init__(None, TENANT, JOB_ID)  # type: ignore[arg-type]
        self.stored: list[tuple[Head, bytes]] = []
        self.events: list[e.Event] = []

    async def last(self) -> Head | None:
        head, body = self.stored[-1]
        return head._replace(body=body)

    async def records(self, upto: int | None = None, *, after: int = 0) -> list[list[dict[str, Any]]]:
        return [decode(body) for _, body in self.stored[after:]]

    async def _append(self, body: bytes, head: Head, *, expected: int) -> Head:
        if expected != len(self.stored):
            raise Fenced(self.subject)
        return self.store(head, body)

    def store(self, head: Head, body: bytes) -> Head:
        """Add a record."""
        stored = head.stored(len(self.stored) + 1, f"m{len(self.stored)}")
        self.stored.append((stored, body))
        self.events += [e.read_event(value) for value in decode(body)]
        return stored


class World:
    """All that outlives a process: the log, the signals, the tickets, and the registry with its ledger."""

    def __init__(self, script: tuple[int, ...]) -> None:
        self.script = script
        self.tool: ToolDefinition | None = pay()
        self.log = MemoryLog()
        self.signals: list[SentSignal] = []
        self.tickets: list[Ticket] = []
        self.ledger: dict[str, ToolReply] = {}
        self.payments: list[Payment] = []
        self.loses_answers = False
        """Whether nobody knows what becomes of the next payment."""
        self.points_left: int | None = None
        self.stored = SimpleNamespace(is_over=lambda _: False)

    def reach(self, _: Failpoint | None = None) -> None:
        """Die here, when it is time; a process that is dead does nothing more."""
        if self.points_left is not None:
            self.points_left -= 1
            if self.points_left <= 0:
                raise Killed

    # The bus, as the executor's code asks it

    async def ask(
        self, request: CallTool | ListTools | ResolveTool | VoidTool, _: type[Any], **__: Any
    ) -> ToolReply | ToolList:
        if isinstance(request, ResolveTool):
            status = "success" if request.outcome == "succeeded" else "failed"
            self.ledger[request.key] = ToolReply(status=status, content=request.content)
            return self.ledger[request.key]
        if isinstance(request, VoidTool):
            return self.ledger.setdefault(request.key, failed("cancelled"))
        tools = (LOOK, *((self.tool,) if self.tool else ()))
        if isinstance(request, ListTools):
            return ToolList(tools=tools)
        if request.key not in self.ledger:
            self.ledger[request.key] = self._call(request)
        return self.ledger[request.key]

    def _call(self, request: CallTool) -> ToolReply:
        if request.tool == LOOK.name:
            return ToolReply(status="success", content=f"seen {request.key}")
        if self.tool is None:
            return failed("unknown_tool")
        if request.definition != self.tool.digest:
            return failed("definition_changed")
        if approvals.arguments_problem(self.tool, request.arguments):
            return failed("invalid_arguments")
        self.payments.append(Payment(request.key, self.tool.digest, request.arguments))
        if self.loses_answers:
            self.loses_answers = False
            return ToolReply(status="unknown")
        return ToolReply(status="success", content=f"paid {request.key}")

    async def send(self, *_: Any, **__: Any) -> None:
        """Say what nobody waits for."""

    async def read(self, _: type[Any], message: Msg, __: str) -> Signal | DecideApproval:
        return self.signals[int((message.headers or {})["Nats-Sequence"]) - 1].signal

    async def leader_read(self, _: Any, __: str, subject: str) -> Stored | None:
        last = next((one for one in reversed(self.signals) if subject in (one.subject, ANY)), None)
        return Stored(last.sequence, {}, b"") if last else None

    async def bulk_read(self, _: Any, __: str, subject: str, *, after: int, upto: int) -> AsyncGenerator[Msg]:
        for one in self.signals:
            if one.subject == subject and after < one.sequence <= upto:
                yield one.message

    # The router

    async def tell(self, subject: str, signal: Signal | DecideApproval, stored_at: datetime) -> None:
        """Store a signal and wake the job where it is parked, as rule 20 says."""
        self.signals.append(SentSignal(len(self.signals) + 1, subject, signal, stored_at))
        head = await self.log.last()
        if head is not None and head.state is State.PARKED and head.signals_seen < len(self.signals):
            self.wake(head)

    def wake(self, head: Head) -> None:
        """Publish the ticket of a parked job; a second one for the same record is none."""
        if all(ticket.at != head.sequence for ticket in self.tickets):
            self.tickets.append(Ticket(TENANT, JOB_ID, head.sequence, head.sequence + 100, 0))

    # What the executor's performers use beside the bus

    async def call_model(self, run: JobRun, action: CallModel) -> tuple[log_writer.Draft, ...]:
        """Answer as the script says: with so many calls, at last with words."""
        known = await run.services.tools.offered(run.writer.job)
        note_news(run.writer, known, silent)
        first = run.writer.job.tools.offered is None
        attempt = ids.attempt_id(TENANT, JOB_ID, action.step, action.attempt)
        named = {"step": action.step, "attempt": action.attempt, "attempt_id": attempt}
        asked = {"provider": "p", "model": "m", "tools": self.tools_of(run.writer.job, known) if first else None}
        run.writer.note(e.ModelRequested, **named, **asked)
        await run.writer.append(Failpoint.EXECUTOR_INTENT_BEFORE, Failpoint.EXECUTOR_INTENT_AFTER)
        message = self.answer(action.step)
        ended = {"message": message, "usage": Usage(), "cost_usd": Decimal(0), "stop_reason": "end", "duration_ms": 1}
        return (log_writer.draft(e.ModelCompleted, **named, **ended),)

    def tools_of(self, _: Job, known: tuple[ToolDefinition, ...]) -> tuple[ToolDefinition, ...]:
        """Return what a job's first call is offered."""
        return known

    def answer(self, step: int) -> AssistantMessage:
        """Return what the model says at a step."""
        if step > len(self.script):
            return AssistantMessage(text="It is paid.")
        paying = [
            ToolCall(call=str(n), tool="pay", arguments={"usd": 10 * step + n}) for n in range(self.script[step - 1])
        ]
        return AssistantMessage(tool_calls=(ToolCall(call="look", tool="look", arguments={"at": step}), *paying))

    async def parked(self, _: str, head: Head, __: e.JobParked) -> None:
        """Do rule 16: look for signals once more."""
        self.reach(Failpoint.EXECUTOR_PARK_AFTER)
        if len(self.signals) > head.signals_seen:
            self.wake(head)
            self.reach(Failpoint.EXECUTOR_PARK_AFTER)

    async def ended(self, _: Any) -> None:
        """Do nothing."""


ANY = f"*.{TENANT}.{JOB_ID}"
APPROVALS, SIGNALS = f"approvals.{TENANT}.{JOB_ID}", f"signals.{TENANT}.{JOB_ID}"


def failed(code: Any) -> ToolReply:
    return ToolReply(status="failed", error=ToolError(code=code, message="no"), begun=False)


async def nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


@dataclass
class Process:
    """One executor on the world; it ends when it is killed."""

    world: World
    services: Any = field(init=False)
    held: HeldJob | None = None

    def __post_init__(self) -> None:
        world = self.world
        self.claims = JobClaims(SimpleNamespace(past=nothing))  # type: ignore[arg-type]
        self.services = SimpleNamespace(
            tools=tool_registry.ToolRegistry(world, fresh_s=0, wait_s=1),  # type: ignore[arg-type]
            follow_up=SimpleNamespace(
                wait_ends=SimpleNamespace(schedule=nothing, withdraw=nothing), parked=world.parked, ended=world.ended
            ),
            histories=SimpleNamespace(remember=lambda _: None),
            permits=SimpleNamespace(wait=nothing),
            decision_ttl_s=3600,
            result_tokens_max=1000,
        )

    async def deliver(self, ticket: Ticket) -> None:
        """Do what a ticket is still good for."""
        world = self.world
        message = SimpleNamespace(ack=lambda: self._ack(ticket), nak=nothing, in_progress=nothing)
        head = await world.log.last()
        assert head is not None
        match judge(head, ticket):
            case Verdict.SETTLE | Verdict.STALE:
                await message.ack()
            case Verdict.PARKED:
                await world.parked(TENANT, head, None)  # type: ignore[arg-type]
                await message.ack()
            case Verdict.CLAIM:
                writer = await self.claims.claim(world.log, head, ticket, 1)
                assert writer is not None
                self.held = HeldJob(
                    world,  # type: ignore[arg-type]
                    ticket,
                    message,  # type: ignore[arg-type]
                    writer,
                    draining=asyncio.Event(),
                    heartbeats=Heartbeats(3600),
                    meanings=Meanings(judge_decision, partial(end_calls, tokens_max=1_000)),
                )
                if isinstance(await run_job.run_job(self.services, self.held), Acked):
                    await message.ack()
            case Verdict.FORGET:
                raise AssertionError("nobody else holds the job")

    async def _ack(self, ticket: Ticket) -> None:
        self.world.tickets = [one for one in self.world.tickets if one.sequence != ticket.sequence]


def first_record(config: AgentConfig) -> list[e.Event]:
    submit = SubmitJob(tenant=TENANT, agent="a", input="Pay.")
    trace = e.SpanRef(trace_id=ids.trace_id(TENANT, JOB_ID), span_id=ids.job_span(TENANT, JOB_ID))
    stamp = {"job_id": JOB_ID, "at": datetime.now(UTC), "trace": trace}
    return [
        e.JobSubmitted(**stamp, seq=1, tenant=TENANT, job=submit, content_hash=submit.content_hash()),
        e.JobRouted(
            **stamp,
            seq=2,
            agent="a",
            agent_version=1,
            config=config,
            route=Route(provider="p", model="m", tier="flash", reason="r"),
            limits=e.Limits(max_steps=20, max_seconds=86_400, max_output_tokens=10),
        ),
    ]
