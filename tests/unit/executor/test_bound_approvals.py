"""Approvals under crashes: a call is made only as it was approved, and each approval is decided and used once.

The executor's own code runs: claim, decide, perform, and the writer of the log. The bus, the registry and the router
are played in memory. A process dies at any of the points where a failpoint could kill it.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from datetime import timedelta
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

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.jobs import DecideApproval, Expire, Signal
from wayline.contracts.tools import (
    ToolDefinition,
)
from wayline.executor import run_job
from wayline.executor.adapters import tool_registry
from wayline.executor.decide import approvals
from wayline.executor.decide.actions import CallModel
from wayline.executor.decide.approvals import approval_hash
from wayline.executor.hold import log_writer, signals
from wayline.executor.hold.claim import Ticket
from wayline.executor.replay import replay
from wayline.journal import Call, Head, State, encode, fold
from wayline.testkit.walks import seeds

from .memory_world import (
    APPROVALS,
    JOB_ID,
    SIGNALS,
    STRICTER,
    TENANT,
    Killed,
    Process,
    World,
    first_record,
    pay,
)

POINTS_MAX = 12
"""At how many points a process can die before it parks, at the most that is tried."""
DELIVERIES_MAX = 60


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
        asyncio.run(self.world.tell(APPROVALS, body, at))

    @precondition(lambda self: self.asked_at)
    @rule(which=st.integers(0, 3))
    def expire(self, which: int) -> None:
        """Have the schedule of an approval say that its time is over."""
        asked = self._asked(which)
        signal = Signal.model_validate({"tenant": TENANT, "signal": Expire(wait_id=asked.approval_id).model_dump()})
        asyncio.run(self.world.tell(SIGNALS, signal, asked.expires_at))

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
        asyncio.run(self.world.tell(SIGNALS, body, self._events()[-1].at))

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
                asyncio.run(self.world.tell(APPROVALS, body, asked.at))
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


@pytest.mark.parametrize("seed", seeds(4))
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
