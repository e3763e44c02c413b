"""Jobs that start others and are cancelled, among routers and executors that die, and what must hold of their logs."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

import orjson

from wayline.chassis import Bus, Delivery
from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.agents import AgentConfig
from wayline.contracts.base import Message
from wayline.contracts.chat import AssistantMessage, ToolCall
from wayline.contracts.jobs import Cancel, Due, RunJob, Signal, Status, SubmitJob, WakeLater
from wayline.contracts.tools import RUN_AGENT, ToolDefinition
from wayline.executor.adapters import children as child_requests
from wayline.executor.decide.children import begun_children, reply_of
from wayline.executor.hold import log_writer
from wayline.executor.perform import follow_up
from wayline.executor.perform.children import STOP
from wayline.executor.prompt.builtin_tools import pin
from wayline.executor.replay import replay
from wayline.journal import Job, JobLog, State, fold, read_record, record_read
from wayline.journal.log import leader_read
from wayline.router.jobs import first_records
from wayline.router.jobs.handlers import children, settlements, signals
from wayline.store import Store

from .conftest import TENANT
from .mortal_world import ENDS, MortalWorld

MODULES = (child_requests, children, first_records, follow_up, log_writer, settlements, signals)
"""Where the failpoints of such jobs are."""
LEAD = AgentConfig(agents=("assistant", "lead"), tools=(), max_steps=10, adapt_steps=False)
JOBS_MAX = 3
STEPS = 70
ROUNDS = 4
POINTS_MAX = 14
"""At how many writes and failpoints a process can die, at the most that is tried."""
GIVES_UP = 0.3
"""How often a wait for jobs that were told to stop is over before anything else happens."""
AGAIN = 0.2
"""How often something comes again while a stalled process still has it."""


@dataclass(frozen=True)
class SentSignal:
    """A signal in its stream."""

    sequence: int
    signal: Signal
    deliveries: int = 0


@dataclass
class History:
    """One job's log, with the place of each event in the stream of all logs."""

    job_id: str
    events: list[e.Event]
    places: list[int]

    @property
    def job(self) -> Job:
        return fold(self.events)

    @property
    def ended_at(self) -> int | None:
        ends = [place for event, place in zip(self.events, self.places, strict=True) if event.type in ENDS]
        assert len(ends) <= 1, f"{self.job_id} has two ends"
        return ends[0] if ends else None


class FamilyWorld(MortalWorld):
    """Jobs that start others, as a plan in their input says, and people who cancel them."""

    def __init__(self, bus: Bus, store: Store) -> None:
        self._send = bus.publish
        super().__init__(bus, store)

    def begin(self, round_number: int) -> None:
        super().begin(round_number)
        self.signals: list[SentSignal] = []
        self.dues: dict[tuple[str, str], Due] = {}
        self.told_to_stop: set[str] = set()

    # What happens

    def submit(self, plan: list[Any]) -> None:
        """Submit a job that starts others as planned."""
        job_id = f"r{self.round}j{len(self.submitted)}"
        body = {"tenant": TENANT, "agent": "lead", "input": said(job_id, plan), "job_id": job_id}
        self.queue(SubmitJob.model_validate(body))

    async def publish(self, message: Message, **options: Any) -> None:
        """Queue a ticket, store a signal, or note a wait that the server ends."""
        if isinstance(message, RunJob):
            await super().publish(message)
        elif isinstance(message, WakeLater):
            due = Due(tenant=message.tenant, job_id=message.job_id, wait_id=message.wait_id)
            self.dues[message.job_id, message.wait_id] = due
        elif isinstance(message, Signal):
            await self._send(message, **options)
            stored = await leader_read(self.bus, "SIGNALS", message.subject)
            assert stored is not None
            self.signals.append(SentSignal(stored.sequence, message))
            if isinstance(message.signal, Cancel) and message.signal.by == "parent":
                self.told_to_stop.add(message.job_id)

    async def cancel(self, job_id: str) -> None:
        """Have a person cancel a job."""
        cancel = Signal(tenant=TENANT, job_id=job_id, signal=Cancel(reason="enough", by="a person"))
        await self.publish(cancel, msg_id=f"{job_id}:cancel")

    async def hear(self, at: int) -> None:
        """Deliver a signal to a router."""
        one = self.signals[at] = replace(self.signals[at], deliveries=self.signals[at].deliveries + 1)
        body = one.signal.model_dump_json().encode()
        delivery = Delivery("SIGNALS", "r", one.sequence, one.deliveries, one.signal.subject, one.sequence, {}, body)
        _, handlers = self.router()
        for message in await handlers.signals.on_signal(one.signal, delivery):
            await self.bus.publish(message)
        self.signals = [other for other in self.signals if other is not one]

    async def expire(self, due: Due) -> None:
        """End a wait, as the server does when its time is over."""
        _, handlers = self.router()
        for message in await handlers.signals.on_due(due, None):  # type: ignore[arg-type]
            await self.bus.publish(message, msg_id=f"{due.job_id}:due:{due.wait_id}")
        self.dues.pop((due.job_id, due.wait_id), None)

    def stops(self) -> list[Due]:
        """Return the waits for jobs that were told to stop."""
        return [due for (_, wait_id), due in self.dues.items() if wait_id.startswith(STOP)]

    async def deliver_one(self) -> bool:
        if self.signals and not self.stalled:
            await self.run(self.hear(0))
            return True
        return await super().deliver_one()

    # What models say

    def tools_of(self, job: Job) -> tuple[ToolDefinition, ...]:
        return pin((), (), agents=job.routing.agents)

    def answer(self, job: Job, step: int) -> AssistantMessage:
        assert job.life.submitted is not None
        plan = orjson.loads(str(job.life.submitted.input))["plan"]
        if step > len(plan):
            return super().answer(job, step)
        calls = [
            ToolCall(
                call=str(number),
                tool=RUN_AGENT,
                arguments={"agent": "lead" if below else "assistant", "input": said(f"{step}.{number}", below)},
            )
            for number, below in enumerate(plan[step - 1])
        ]
        return AssistantMessage(tool_calls=tuple(calls))

    # What the logs say

    async def families(self) -> dict[str, History]:
        """Return the logs of all jobs that may have begun, each before its children."""
        found: dict[str, History] = {}
        waiting = list(self.submitted)
        while waiting:
            history = await self.history(waiting.pop(0))
            if not history.events:
                continue
            assert history.job_id not in found
            found[history.job_id] = history
            waiting += [child for child, _ in wanted(history)]
        return found

    async def history(self, job_id: str) -> History:
        history = History(job_id, [], [])
        async for message in record_read(self.bus, JobLog(self.bus, TENANT, job_id).subject):
            for event in read_record(message.data):
                history.events.append(event)
                history.places.append(int((message.headers or {})["Nats-Sequence"]))
        return history

    async def check(self) -> None:
        """Check every log: what each parent knows of its children is so, and in order."""
        families = await self.families()
        for history in families.values():
            begun = [event for event in history.events if isinstance(event, e.JobSubmitted)]
            asked = [(event.step, event.attempt) for event in history.events if isinstance(event, e.ModelRequested)]
            assert len(begun) == 1
            assert len(set(asked)) == len(asked), f"{history.job_id} was begun twice"
            check_results(history, families)
            check_stopped(history, families)
            self.check_told(history)

    def check_told(self, parent: History) -> None:
        """Check that a job has told those to stop for whose end it waits before its own."""
        for event in parent.events:
            if isinstance(event, e.JobParked) and event.waiting.wait_id.startswith(STOP):
                untold = set(event.waiting.children) - self.told_to_stop
                assert not untold, f"{parent.job_id} did not stop {untold}"


def said(name: str, plan: list[Any]) -> str:
    """Return the input of a job: its plan, for each step the plans of the jobs that it starts."""
    return orjson.dumps({"name": name, "plan": plan}).decode()


def wanted(history: History) -> list[tuple[str, e.ToolRequested]]:
    """Return the jobs that a job may have started, with the call of each."""
    return [
        (ids.child_id(TENANT, history.job_id, event.step, event.call), event)
        for event in history.events
        if isinstance(event, e.ToolRequested)
    ]


def check_results(parent: History, families: dict[str, History]) -> None:
    """Check that the results of a parent's calls are its children's ends, read after they were written."""
    for event, place in zip(parent.events, parent.places, strict=True):
        if not isinstance(event, e.ToolCompleted):
            continue
        child = families.get(ids.child_id(TENANT, parent.job_id, event.step, event.call))
        if event.child is None or event.child.status is None:
            continue
        assert child is not None
        assert child.ended_at is not None and child.ended_at < place, f"{parent.job_id} read an end that was none"
        assert event.content == reply_of(child.job).content
        assert event.child.status == child.job.life.status


def check_stopped(parent: History, families: dict[str, History]) -> None:
    """Check that the children of an ended job have ended before it, but for those that it left and names."""
    if parent.ended_at is None:
        return
    end = parent.events[-1]
    left = {
        event.child.job_id
        for event in parent.events
        if isinstance(event, e.ToolCompleted) and event.child is not None and event.child.status is None
    }
    late = any(
        isinstance(event, e.DecisionMade) and event.outcome == "expired" and event.decision_id.startswith(STOP)
        for event in parent.events
    )
    assert late or not left, f"{parent.job_id} did not wait for {left}"
    if isinstance(end, e.JobCancelled):
        assert all(job_id in (end.reason or "") for job_id in left)
    for child_id, _ in wanted(parent):
        child = families.get(child_id)
        if child is not None and child_id not in left:
            assert child.ended_at is not None and child.ended_at < parent.ended_at, f"{parent.job_id} ended first"


def plan_of(chance: random.Random, depth: int = 0) -> list[Any]:
    """Return one or two steps, each of one or two jobs; some of those start others, too."""
    steps = chance.randint(1, 2) if depth == 0 else chance.choice([0, 0, 1])
    below = depth + 1
    return [[plan_of(chance, below) if below < 3 else [] for _ in range(chance.randint(1, 2))] for _ in range(steps)]


def begins_children(job: Job) -> bool:
    """Return whether a job that runs has asked for others."""
    return job.life.status is Status.RUNNING and bool(begun_children(job))


async def give_up(world: FamilyWorld, due: Due, trouble: dict[str, int]) -> None:
    """End the wait for jobs that were told to stop, and have its job go on before they can end."""
    await world.run(world.expire(due), **trouble)
    heard = [at for at, one in enumerate(world.signals) if one.signal.job_id == due.job_id]
    if heard:
        await world.run(world.hear(heard[-1]))
    tickets = [sequence for sequence, (run, _) in world.tickets.items() if run.job == due.job_id]
    if tickets:
        await world.run(world.holding(tickets[-1], world.deliver(tickets[-1])), **trouble)


async def step(world: FamilyWorld, chance: random.Random) -> None:
    """Do one thing, and maybe die or stall at it."""
    at = chance.randint(1, POINTS_MAX)
    again = chance.random() < AGAIN
    trouble: dict[str, int] = chance.choice([{}, {"dies_at": at}, {"stalls_in": at}])
    if (stops := world.stops()) and chance.random() < GIVES_UP:
        await give_up(world, chance.choice(stops), trouble)
        return
    match chance.choices(range(6), weights=[1, 2, 8, 1, 3, 2])[0]:
        case 0 if len(world.submitted) < JOBS_MAX:
            world.submit(plan_of(chance))
        case 1 if world.submissions:
            at = chance.randrange(len(world.submissions))
            sequence = world.submissions[at].sequence
            if again or sequence not in world.taken:
                await world.run(world.holding(sequence, world.admit(at)), **trouble)
        case 2 if waiting := [sequence for sequence in world.tickets if again or sequence not in world.taken]:
            sequence = chance.choice(waiting)
            await world.run(world.holding(sequence, world.deliver(sequence)), **trouble)
        case 3 if families := await world.families():
            # Rather one that has just asked for children: it is told to end while they begin.
            starting = [job_id for job_id, history in families.items() if begins_children(history.job)]
            await world.cancel(chance.choice(starting or list(families)))
        case 4 if world.signals:
            await world.run(world.hear(chance.randrange(len(world.signals))), **trouble)
        case 5 if world.stalled:
            await world.go_on(chance.randrange(len(world.stalled)))
        case _:
            pass


async def check_ends(world: FamilyWorld) -> None:
    """Check that every job has ended, and as its log says it had to."""
    await world.check()
    for job_id, history in (await world.families()).items():
        head = await JobLog(world.bus, TENANT, job_id).last()
        assert head is not None
        assert head.state is State.ENDED, f"{job_id} was never woken"
        assert replay(history.events).divergence is None


async def walk(world: FamilyWorld, chance: random.Random) -> None:
    """Take many steps in some rounds of other jobs, and check what every log says."""
    for number in range(ROUNDS):
        world.begin(number)
        for _ in range(STEPS):
            await step(world, chance)
        await world.check()
        await world.settle_down()
        await check_ends(world)
