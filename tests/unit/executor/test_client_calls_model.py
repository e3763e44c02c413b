"""Calls of a caller's own tools under crashes: each ends once, with the first result that was given or its time over.

The executor's own code runs; the log, the signals and the registry are played in memory. A process dies at any
failpoint, results come in any order, twice, with other words, for several calls at once, or never.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage, ToolCall
from wayline.contracts.jobs import (
    Cancel,
    ClientTool,
    DecideApproval,
    Expire,
    JobOptions,
    Signal,
    ToolResult,
    ToolResults,
    result_wait_id,
)
from wayline.contracts.tools import CallTool, ToolDefinition, VoidTool
from wayline.executor import run_job
from wayline.executor.adapters import tool_registry
from wayline.executor.decide.actions import CallModel
from wayline.executor.decide.client_calls import client_definitions
from wayline.executor.hold import log_writer, signals
from wayline.executor.hold.claim import Ticket
from wayline.executor.replay import replay
from wayline.journal import Head, Job, State, encode, fold
from wayline.testkit.walks import seeds

from .memory_world import APPROVALS, JOB_ID, SIGNALS, TENANT, Killed, Process, World, first_record

OURS = "asks"
STEPS, ROUNDS, DELIVERIES_MAX = 30, 25, 80


class CallersWorld(World):
    """A job whose model calls its caller's tool beside others: `script` says how often at each step."""

    async def ask(self, request: Any, kind: type[Any], **options: Any) -> Any:
        asked = isinstance(request, CallTool | VoidTool) and request.tool == OURS
        assert not asked, "the registry was asked for a tool of the caller's"
        return await super().ask(request, kind, **options)

    def tools_of(self, job: Job, known: tuple[ToolDefinition, ...]) -> tuple[ToolDefinition, ...]:
        return (*known, *client_definitions(job))

    def answer(self, step: int) -> AssistantMessage:
        if step > len(self.script):
            return AssistantMessage(text="It is done.")
        calls = [ToolCall(call="look", tool="look", arguments={"at": step})]
        calls += [ToolCall(call=f"pay{step}", tool="pay", arguments={"usd": step})] * (step % 2)
        calls += [ToolCall(call=str(n), tool=OURS, arguments={"n": n}) for n in range(self.script[step - 1])]
        return AssistantMessage(tool_calls=tuple(calls))


class Told:
    """One job's history."""

    def __init__(self, patch: pytest.MonkeyPatch, chance: random.Random) -> None:
        world = self.world = CallersWorld(tuple(chance.randint(0, 3) for _ in range(chance.randint(1, 3))))
        self.chance = chance
        for module in (log_writer, tool_registry):
            patch.setattr(module, "reach", world.reach)
        patch.setattr(signals, "leader_read", world.leader_read)
        patch.setattr(signals, "bulk_read", world.bulk_read)
        patch.setitem(run_job.PERFORM, CallModel, world.call_model)
        submitted, routed = first_record(AgentConfig(tools=("look", "pay"), tools_in_order=chance.random() < 0.3))
        assert isinstance(submitted, e.JobSubmitted)
        options = JobOptions(client_tools=(ClientTool(name=OURS),))
        job = submitted.job.model_copy(update={"options": options})
        given = e.ClientToolsGiven(job_id=JOB_ID, seq=3, at=routed.at, trace=routed.trace, tools=(OURS,))
        first = [submitted.model_copy(update={"job": job}), routed, given]
        world.log.store(Head(0, State.NEW, 3, "hash"), encode(first))
        world.tickets.append(Ticket(TENANT, JOB_ID, 1, 100, 0))
        self.words: dict[str, list[str]] = {}
        """What was given for each key, in that order."""
        self.late: set[str] = set()
        """Keys whose time was said to be over before any result."""
        self.cancelled = False

    @property
    def events(self) -> list[e.Event]:
        return self.world.log.events

    @property
    def ended(self) -> bool:
        return self.world.log.stored[-1][0].state is State.ENDED

    def asked(self) -> dict[str, e.ToolRequested]:
        """Return the calls of the caller's tool that the log has, by key."""
        return {one.key: one for one in self.events if isinstance(one, e.ToolRequested) and one.tool == OURS}

    def run(self, *, dies_at: int | None = None) -> None:
        """Deliver a ticket to a new process."""
        world = self.world
        ticket = world.tickets[-1]
        ticket = Ticket(TENANT, JOB_ID, ticket.at, ticket.sequence, ticket.delivery + 1)
        world.tickets[-1] = ticket
        world.points_left = dies_at
        with suppress(Killed):
            asyncio.run(Process(world).deliver(ticket))
        world.points_left = None

    def give(self, *keys: str) -> None:
        """Give results, each in other words than before."""
        results = []
        for key in keys:
            told = self.words.setdefault(key, [])
            told.append(f"{key} for the {len(told)}. time")
            results.append(ToolResult(key=key, content=told[-1]))
        self._tell(Signal(tenant=TENANT, job_id=JOB_ID, signal=ToolResults(results=tuple(results))))

    def expire(self, key: str) -> None:
        """Say that the time of a call is over."""
        asked = self.asked()[key]
        if key not in self.words:
            self.late.add(key)
        wait_id = result_wait_id(asked.step, asked.call)
        self._tell(Signal(tenant=TENANT, job_id=JOB_ID, signal=Expire(wait_id=wait_id)))

    def cancel(self) -> None:
        """Have the job stop: what is still open ends with it."""
        self.cancelled = True
        self._tell(Signal(tenant=TENANT, job_id=JOB_ID, signal=Cancel(reason="enough")))

    def decide(self) -> None:
        """Approve whatever waits for that."""
        for asked in fold(self.events).tools.pending:
            named = {"tenant": TENANT, "job_id": JOB_ID, "approval_id": asked.approval_id}
            asyncio.run(self.world.tell(APPROVALS, DecideApproval(**named, decision="approve"), asked.at))

    def _tell(self, signal: Signal) -> None:
        asyncio.run(self.world.tell(SIGNALS, signal, self.events[-1].at + timedelta(seconds=1)))

    def check(self) -> None:
        """Check that each call has one end at most, and that its end says what came first."""
        ends = [one for one in self.events if isinstance(one, e.ToolCompleted)]
        assert set(Counter((one.step, one.call) for one in ends).values()) <= {1}
        asked = {(one.step, one.call): key for key, one in self.asked().items()}
        for end in ends:
            if (key := asked.get((end.step, end.call))) is None:
                continue
            if self.cancelled and end.error is not None and end.error.code == "cancelled":
                continue
            if key in self.late:
                assert end.error is not None and end.error.code == "timeout"
            else:
                assert end.content == self.words[key][0]
        assert set(Counter(one.key for one in self.world.payments).values()) <= {1}


def step(told: Told) -> None:
    """Do one thing: mostly processes that run, and callers that give results."""
    chance, world = told.chance, told.world
    keys = list(told.asked())
    match chance.choices(range(5), weights=[6, 4, 1, 1, 0.15])[0]:
        case 0 if world.tickets:
            told.run(**chance.choice([{}, {"dies_at": chance.randint(1, 10)}]))
        case 1 if keys:
            told.give(*chance.sample(keys, chance.randint(1, len(keys))))
        case 2 if keys:
            told.expire(chance.choice(keys))
        case 3:
            told.decide()
        case 4:
            told.cancel()
        case _:
            pass


def bring_to_its_end(told: Told) -> None:
    """Give every result with every process alive: the job ends."""
    for _ in range(DELIVERIES_MAX):
        if told.ended:
            return
        told.decide()
        if waiting := [key for key in told.asked() if key not in told.words and key not in told.late]:
            told.give(*waiting)
        assert told.world.tickets, "nobody wakes the job"
        told.run()
    raise AssertionError("the job does not end")


@pytest.mark.parametrize("seed", [(0, 7, 11, 18, 29)[place] for place in seeds(5)])
def test_calls_of_callers_tools_end_once_whoever_dies(monkeypatch: pytest.MonkeyPatch, seed: int):
    chance, ends = random.Random(seed), Counter[str]()
    for _ in range(ROUNDS):
        told = Told(monkeypatch, chance)
        for _ in range(STEPS):
            step(told)
            told.check()
        bring_to_its_end(told)
        told.check()
        assert replay(told.events).divergence is None
        ends.update(event.type for event in told.events[-1:])
    assert set(ends) == {"job.completed", "job.cancelled"}
