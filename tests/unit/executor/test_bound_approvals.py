"""Approvals under crashes: a call is made only as it was approved, and each approval is decided and used once.

The executor's own code runs: claim, decide, perform, and the writer of the log. The bus, the registry and the router
are played in memory. A process dies at any of the points where a failpoint could kill it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
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
)
from wayline.executor import run_job
from wayline.executor.adapters import tool_registry
from wayline.executor.claim_jobs import Claims
from wayline.executor.decide import approvals
from wayline.executor.decide.actions import CallModel
from wayline.executor.decide.approvals import approval_hash
from wayline.executor.hold import log_writer, signals
from wayline.executor.hold.claim import Ticket, Verdict, judge
from wayline.executor.hold.heartbeat import Heartbeats
from wayline.executor.hold.held_job import HeldJob
from wayline.executor.perform.job_run import JobRun
from wayline.executor.perform.tell_model import note_news
from wayline.executor.prompt.notes import silent
from wayline.executor.replay import replay
from wayline.journal import Call, Fenced, Head, JobLog, State, decode, encode, fold
from wayline.journal.log import Stored

TENANT, JOB_ID = "default", "j1"
POINTS_MAX = 12
"""At how many points a process can die before it parks, at the most that is tried."""
DELIVERIES_MAX = 60
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

    async def records(self, upto: int | None = None) -> list[list[dict[str, Any]]]:
        return [decode(body) for _, body in self.stored]

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

    def reach(self, _: Failpoint) -> None:
        """Die here, when it is time."""
        if self.points_left is not None:
            self.points_left -= 1
            if self.points_left == 0:
                raise Killed

    # The bus, as the executor's code asks it

    async def ask(self, request: CallTool | ListTools | ResolveTool, _: type[Any], **__: Any) -> ToolReply | ToolList:
        if isinstance(request, ResolveTool):
            status = "success" if request.outcome == "succeeded" else "failed"
            self.ledger[request.key] = ToolReply(status=status, content=request.content)
            return self.ledger[request.key]
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

    async def send(self, subject: str, signal: Signal | DecideApproval, stored_at: datetime) -> None:
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
        asked = {"provider": "p", "model": "m", "tools": known if first else None}
        run.writer.note(e.ModelRequested, **named, **asked)
        await run.writer.append(Failpoint.EXECUTOR_INTENT_BEFORE, Failpoint.EXECUTOR_INTENT_AFTER)
        message = self._answer(action.step)
        ended = {"message": message, "usage": Usage(), "cost_usd": Decimal(0), "stop_reason": "end", "duration_ms": 1}
        return (log_writer.draft(e.ModelCompleted, **named, **ended),)

    def _answer(self, step: int) -> AssistantMessage:
        if step > len(self.script):
            return AssistantMessage(text="It is paid.")
        paying = [
            ToolCall(call=str(n), tool="pay", arguments={"usd": 10 * step + n}) for n in range(self.script[step - 1])
        ]
        return AssistantMessage(tool_calls=(ToolCall(call="look", tool="look", arguments={"at": step}), *paying))

    async def parked(self, _: str, head: Head, __: e.JobParked, message: Any) -> None:
        """Do rule 16: look for signals once more, then let the ticket go."""
        self.reach(Failpoint.EXECUTOR_PARK_AFTER)
        if len(self.signals) > head.signals_seen:
            self.wake(head)
            self.reach(Failpoint.EXECUTOR_PARK_AFTER)
        await message.ack()

    async def ended(self, _: Any, message: Any) -> None:
        await message.ack()


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

    def __post_init__(self) -> None:
        world = self.world
        self.claims = Claims(SimpleNamespace(past=nothing))  # type: ignore[arg-type]
        self.services = SimpleNamespace(
            tools=tool_registry.ToolRegistry(world, fresh_s=0, wait_s=1),  # type: ignore[arg-type]
            follow_up=SimpleNamespace(schedule=nothing, parked=world.parked, ended=world.ended),
            histories=SimpleNamespace(remember=lambda _: None),
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
                await world.parked(TENANT, head, None, message)  # type: ignore[arg-type]
            case Verdict.CLAIM:
                writer = await self.claims.claim(world.log, head, ticket, 1)
                assert writer is not None
                held = HeldJob(
                    world,  # type: ignore[arg-type]
                    ticket,
                    message,  # type: ignore[arg-type]
                    writer,
                    draining=asyncio.Event(),
                    heartbeats=Heartbeats(3600),
                )
                await run_job.run_job(self.services, held)
            case Verdict.FORGET:
                raise AssertionError("nobody else holds the job")

    async def _ack(self, ticket: Ticket) -> None:
        self.world.tickets = [one for one in self.world.tickets if one.sequence != ticket.sequence]


class Machine(RuleBasedStateMachine):
    """People, administrators and processes that die, in any order."""

    world: World
    patch: pytest.MonkeyPatch

    @initialize(script=st.lists(st.integers(1, 2), min_size=1, max_size=3).map(tuple), ordered=st.booleans())
    def begin(self, script: tuple[int, ...], ordered: bool) -> None:
        world = self.world = World(script)
        self.policies: dict[str, str] = {}
        self.asked_at: dict[str, int] = {}
        for module in (log_writer, tool_registry):
            self.patch.setattr(module, "reach", world.reach)
        self.patch.setattr(signals, "leader_read", world.leader_read)
        self.patch.setattr(signals, "bulk_read", world.bulk_read)
        self.patch.setitem(run_job.PERFORM, CallModel, world.call_model)
        self.patch.setattr(approvals, "RULES_VERSION", "1")
        self.rules_changed = False
        first = first_record(AgentConfig(tools_in_order=ordered))
        world.log.store(Head(0, State.NEW, first[-1].seq, "hash"), encode(first))
        world.tickets.append(Ticket(TENANT, JOB_ID, 1, 100, 0))

    # What happens

    @precondition(lambda self: self.world.tickets)
    @rule(dies_at=st.none() | st.integers(1, POINTS_MAX), newest=st.booleans())
    def run(self, dies_at: int | None, newest: bool) -> None:
        """Deliver a ticket to a new process, which may die."""
        world = self.world
        at = -1 if newest else 0
        ticket = world.tickets[at]
        ticket = Ticket(TENANT, JOB_ID, ticket.at, ticket.sequence, ticket.delivery + 1)
        world.tickets[at] = ticket
        world.points_left = dies_at
        with suppress(Killed):
            asyncio.run(Process(world).deliver(ticket))
        world.points_left = None
        for event in world.log.events:
            if isinstance(event, e.ApprovalRequested):
                self.asked_at.setdefault(event.approval_id, len(world.signals))
            elif isinstance(event, e.ToolRequested):
                self.policies.setdefault(event.key, f"{approvals.RULES_VERSION}/1")

    @precondition(lambda self: self.asked_at)
    @rule(
        which=st.integers(0, 3),
        decision=st.sampled_from(["approve", "approve", "approve", "deny"]),
        arguments=st.sampled_from([None, None, {"usd": 1}, {"usd": "all"}, {"usd": 2, "to": "bob"}]),
        late=st.sampled_from([False, False, False, True]),
    )
    def decide(self, *, which: int, decision: Any, arguments: dict[str, Any] | None, late: bool) -> None:
        """Decide on one of the newest approvals, which may be decided or spent, or past its time."""
        asked = self._asked(which)
        given = arguments if decision == "approve" else None
        at = asked.expires_at + timedelta(seconds=2) if late else asked.at
        body = DecideApproval(tenant=TENANT, approval_id=asked.approval_id, decision=decision, arguments=given)
        asyncio.run(self.world.send(APPROVALS, body, at))

    @precondition(lambda self: self.asked_at)
    @rule(which=st.integers(0, 3))
    def expire(self, which: int) -> None:
        """Have the schedule of an approval say that its time is over."""
        asked = self._asked(which)
        signal = Signal.model_validate({"tenant": TENANT, "signal": Expire(wait_id=asked.approval_id).model_dump()})
        asyncio.run(self.world.send(SIGNALS, signal, asked.expires_at))

    @rule()
    def lose_answer(self) -> None:
        """Have nobody know what becomes of the next payment."""
        self.world.loses_answers = True

    @precondition(lambda self: self._undecided())
    @rule(outcome=st.sampled_from(["retry", "retry", "succeeded", "failed"]))
    def answer(self, outcome: str) -> None:
        """Say what became of a payment of which nobody knows, or have it made again."""
        call = self._undecided()[0]
        signal = {"type": "answer", "decision_id": call.decision_id, "outcome": outcome}
        body = Signal.model_validate({"tenant": TENANT, "signal": signal})
        asyncio.run(self.world.send(SIGNALS, body, self._events()[-1].at))

    @rule(tool=st.sampled_from([pay(), pay("cheaper"), pay("stricter", STRICTER), pay("cheaper"), None]))
    def change_tool(self, tool: ToolDefinition | None) -> None:
        """Have the tool's server list another definition, or none."""
        self.world.tool = tool

    @rule(version=st.sampled_from(["1", "2"]))
    def change_rules(self, version: str) -> None:
        """Start the next processes from a build with other rules."""
        self.rules_changed |= version != approvals.RULES_VERSION
        self.patch.setattr(approvals, "RULES_VERSION", version)

    # What always holds

    @invariant()
    def every_payment_was_approved_as_it_was_made(self) -> None:
        granted: dict[str, tuple[e.ApprovalRequested, e.ApprovalDecided]] = {}
        waiting: dict[str, e.ApprovalRequested] = {}
        newest: dict[str, str] = {}
        intents: dict[str, tuple[e.ApprovalRequested, e.ApprovalDecided]] = {}
        for event in self._events():
            if isinstance(event, e.ApprovalRequested):
                waiting[event.approval_id] = event
                newest[event.call] = event.approval_id
            elif isinstance(event, e.ApprovalDecided) and event.decision == "approved":
                granted[event.approval_id] = waiting[event.approval_id], event
            elif isinstance(event, e.ModelCompleted):
                newest.clear()
            elif isinstance(event, e.ToolRequested) and newest.get(event.call) in granted:
                # An approval is for one call; what the registry will refuse anyway needs none.
                intents[event.key] = granted.pop(newest[event.call])
        for payment in self.world.payments:
            asked, decided = intents[payment.key]
            assert decided.hash == approval_hash(payment.digest, payment.arguments, asked.policy)
            assert asked.policy == self.policies[payment.key]
        assert len({payment.key for payment in self.world.payments}) == len(self.world.payments)

    @invariant()
    def an_approval_has_the_first_decision_and_no_other(self) -> None:
        asked, decisions = {}, {}
        for event in self._events():
            if isinstance(event, e.ApprovalRequested):
                asked[event.approval_id] = event
            elif isinstance(event, e.ApprovalDecided):
                assert event.approval_id not in decisions
                decisions[event.approval_id] = event
        for name, decided in decisions.items():
            assert (decided.decision, decided.arguments) == self._first_decision(asked[name])

    def teardown(self) -> None:
        """Approve whatever waits, with every process alive: the job ends."""
        if not hasattr(self, "world"):
            return
        for _ in range(DELIVERIES_MAX):
            if self._ended():
                break
            for asked in fold(self._events()).tools.pending:
                body = DecideApproval(tenant=TENANT, approval_id=asked.approval_id, decision="approve")
                asyncio.run(self.world.send(APPROVALS, body, asked.at))
            if self._undecided():
                self.answer("succeeded")
            assert self.world.tickets, "nobody wakes the job"
            self.run(dies_at=None, newest=True)
        assert self._ended()
        self.every_payment_was_approved_as_it_was_made()
        self.an_approval_has_the_first_decision_and_no_other()
        if not self.rules_changed:
            assert replay(self._events()).divergence is None

    def _ended(self) -> bool:
        return self.world.log.stored[-1][0].state is State.ENDED

    def _undecided(self) -> list[Call]:
        """Return the calls of which a person must say what became of them."""
        return [call for call in fold(self._events()).tools.calls if call.undecided] if self._events() else []

    def _events(self) -> list[e.Event]:
        return self.world.log.events if hasattr(self, "world") else []

    def _asked(self, which: int) -> e.ApprovalRequested:
        asked = [event for event in self._events() if isinstance(event, e.ApprovalRequested)]
        return asked[-1 - which % len(asked)]

    def _first_decision(self, asked: e.ApprovalRequested) -> tuple[str, dict[str, Any] | None] | None:
        for one in self.world.signals:
            if one.approval_id != asked.approval_id:
                continue
            heard = one.signal
            if not isinstance(heard, DecideApproval) or one.stored_at > asked.expires_at:
                return "expired", None
            if heard.decision == "deny":
                return "denied", None
            if heard.arguments is None or self._fits(heard.arguments, asked):
                return "approved", heard.arguments
        return None

    def _fits(self, arguments: dict[str, Any], asked: e.ApprovalRequested) -> bool:
        shown = next(
            one for one in (pay(), pay("cheaper"), pay("stricter", STRICTER)) if one.digest == asked.definition
        )
        return approvals.arguments_problem(shown, arguments) is None


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


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> type[Machine]:
    Machine.patch = monkeypatch
    return Machine


def test_decisions_and_kills_in_any_order_make_no_wrong_call(machine: type[Machine]):
    chosen = settings(
        max_examples=10,
        stateful_step_count=20,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=chosen)


@pytest.mark.parametrize("seed", range(4))
def test_long_and_busy_histories_make_no_wrong_call(machine: type[Machine], seed: int):
    chance = random.Random(seed)
    paid = 0
    for _ in range(15):
        told = machine()
        told.begin(script=(2, 2, 1), ordered=chance.random() < 0.3)
        for _ in range(40):
            step(told, chance)
            told.every_payment_was_approved_as_it_was_made()
            told.an_approval_has_the_first_decision_and_no_other()
        told.teardown()
        paid += len(told.world.payments)
    assert paid > 0


def step(told: Machine, chance: random.Random) -> None:
    """Do one thing: mostly people who decide and processes that run, now and then a change of what they rest on."""
    match chance.choices(range(7), weights=[6, 6, 1, 0.6, 0.4, 0.5, 1])[0]:
        case 0 if told.world.tickets:
            told.run(dies_at=chance.choice([None, None, chance.randint(1, POINTS_MAX)]), newest=chance.random() < 0.8)
        case 1 if told.asked_at:
            decision = chance.choices(["approve", "deny"], weights=[8, 1])[0]
            arguments = chance.choice([None, None, {"usd": chance.randint(1, 3)}, {"usd": "all"}])
            told.decide(which=chance.randint(0, 3), decision=decision, arguments=arguments, late=chance.random() < 0.1)
        case 2 if told.asked_at:
            told.expire(chance.randint(0, 3))
        case 3:
            told.change_tool(chance.choice([pay(), pay("cheaper"), pay("stricter", STRICTER), None]))
        case 4:
            told.change_rules(chance.choice(["1", "2"]))
        case 5:
            told.lose_answer()
        case 6 if told._undecided():  # pyright: ignore[reportPrivateUsage]
            told.answer(chance.choice(["retry", "retry", "succeeded", "failed"]))
        case _:
            pass
