"""A session runs one job at a time, in the order of its turns, wherever a router or an executor is killed.

The router's handlers and the executor's claim, run and follow-up are the real ones, on a real bus and database. A
process dies before or after any of its writes to either, and at any failpoint; what it had not acked comes again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from wayline.chassis import Bus, Delivery, Failpoint
from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.base import Message
from wayline.contracts.budgets import SettleJob
from wayline.contracts.chat import AssistantMessage
from wayline.contracts.errors import Conflict, Reject
from wayline.contracts.jobs import RunJob, SubmitJob
from wayline.contracts.money import Usage
from wayline.contracts.sessions import DeleteSession
from wayline.executor import run_job
from wayline.executor.adapters.budgets import Budgets
from wayline.executor.adapters.children import Children
from wayline.executor.adapters.session_histories import SessionHistories
from wayline.executor.claim_jobs import Claims
from wayline.executor.decide.actions import CallModel
from wayline.executor.hold import log_writer
from wayline.executor.hold.claim import Ticket, Verdict, judge
from wayline.executor.hold.heartbeat import Heartbeats
from wayline.executor.hold.held_job import HeldJob
from wayline.executor.hold.log_writer import ClaimLost
from wayline.executor.perform import follow_up
from wayline.executor.perform.follow_up import FollowUp
from wayline.executor.perform.job_run import JobRun
from wayline.executor.replay import replay
from wayline.journal import JobLog, State, fold, read_history, read_record, record_read
from wayline.router.adapters.jobs import turns
from wayline.router.handlers import first_records, settlements
from wayline.router.settings import Settings
from wayline.router.wiring import Adapters, Handlers
from wayline.store import Store

from .conftest import TENANT, Office

SESSIONS = ("s1", "s2")
JOBS_MAX = 8
STEPS = 60
ROUNDS = 4
POINTS_MAX = 10
"""At how many writes and failpoints a process can die, at the most that is tried."""
AGAIN = 0.2
"""How often something comes again while a stalled process still has it."""
QUIET_AFTER = 400
"""Deliveries after which every job has ended where nobody dies any more."""


class Killed(BaseException):
    """The process is gone."""


@dataclass(frozen=True)
class Submission:
    """A submitted job in its queue."""

    sequence: int
    job: SubmitJob
    deliveries: int = 0


class Process:
    """How many writes and failpoints a process has left, and how many until it stalls."""

    def __init__(self, points_left: int | None = None, *, stalls_in: int | None = None) -> None:
        self.points_left = points_left
        self.dead = asyncio.Event()
        self.stalls_in = stalls_in
        self.stalled = asyncio.Event()
        self.goes_on = asyncio.Event()
        self._hanging: set[asyncio.Task[Any]] = set()

    def comes_to_its_end(self) -> bool:
        """Count a point, and return whether the process is dead from now on."""
        if self.points_left is not None:
            self.points_left -= 1
            if self.points_left <= 0:
                self.dead.set()
        return self.dead.is_set()

    async def stall(self) -> None:
        """Stand still where it is time, until somebody lets it go on."""
        if self.stalls_in is not None:
            self.stalls_in -= 1
            if self.stalls_in == 0:
                self.stalled.set()
                await self.goes_on.wait()

    async def hang(self) -> None:
        """Go no further, whichever task of the process this is."""
        task = asyncio.current_task()
        assert task is not None
        self._hanging.add(task)
        await asyncio.Event().wait()

    async def bury(self, task: asyncio.Task[None]) -> None:
        """End what is left of the process."""
        self._hanging.add(task)
        for one in self._hanging:
            one.cancel()
        await asyncio.wait(self._hanging)


PROCESS: ContextVar[Process] = ContextVar("process")


class World:
    """Queues of submissions and tickets, and processes that take from them."""

    def __init__(self, bus: Bus, store: Store) -> None:
        self.bus = bus
        self.store = store
        self._queued = 100
        self.begin(0)

    def begin(self, round_number: int) -> None:
        """Begin again, with other jobs and sessions."""
        self.round = round_number
        self.submissions: list[Submission] = []
        self.tickets: dict[int, tuple[RunJob, int]] = {}
        """By sequence, with how often each was delivered."""
        self.taken: set[int] = set()
        """Sequences of what a living process has in hand: it seldom comes a second time meanwhile."""
        self.submitted: list[str] = []
        self.stalled: list[tuple[Process, asyncio.Task[None]]] = []

    # Death

    def reach(self, _: Failpoint | None = None) -> None:
        """Die here, when it is time."""
        process = PROCESS.get()
        if process.comes_to_its_end():
            raise Killed

    def mortal(self, write: Callable[..., Any]) -> Callable[..., Any]:
        """Return a write before and after which a process can die; a dead one writes nothing."""

        async def written(*args: Any, **named: Any) -> Any:
            process = PROCESS.get()
            if process.comes_to_its_end():
                await process.hang()
            await process.stall()
            answer = await write(*args, **named)
            if process.comes_to_its_end():
                await process.hang()
            return answer

        return written

    async def run(
        self, work: Coroutine[Any, Any, None], *, dies_at: int | None = None, stalls_in: int | None = None
    ) -> None:
        """Do something as a process of its own, to its end or its death, or until it stalls."""
        process = Process(dies_at, stalls_in=stalls_in)
        PROCESS.set(process)
        task = asyncio.create_task(work)
        PROCESS.set(Process())
        stalled = asyncio.create_task(process.stalled.wait())
        if await self._first(process, task, stalled) is stalled:
            self.stalled.append((process, task))
        stalled.cancel()

    async def holding(self, sequence: int, work: Coroutine[Any, Any, None]) -> None:
        """Do something with what was taken from a queue."""
        self.taken.add(sequence)
        try:
            await work
        finally:
            self.taken.discard(sequence)

    async def go_on(self, at: int = 0) -> None:
        """Let a process go on that has stalled."""
        process, task = self.stalled.pop(at)
        process.goes_on.set()
        await self._first(process, task)

    async def _first(self, process: Process, task: asyncio.Task[None], *others: asyncio.Task[Any]) -> object:
        """Return what of these happened; a process that died is gone."""
        death = asyncio.create_task(process.dead.wait())
        await asyncio.wait((task, death, *others), return_when=asyncio.FIRST_COMPLETED)
        death.cancel()
        if process.dead.is_set():
            await process.bury(task)
        elif task.done():
            task.result()
        else:
            return next(other for other in others if other.done())
        return task

    # The router

    def router(self) -> tuple[Adapters, Handlers]:
        settings = Settings()
        adapters = Adapters.of(self.bus, self.store, settings, signals_per_tenant_max=100)
        return adapters, Handlers.of(self.bus, adapters, default_model=settings.default_model)

    def submit(self, session: str, when_busy: str) -> None:
        """Store another submission."""
        job_id = f"r{self.round}j{len(self.submitted)}"
        body = {"tenant": TENANT, "agent": "assistant", "input": job_id, "job_id": job_id}
        body["session_id"] = f"r{self.round}{session}"
        job = SubmitJob.model_validate({**body, "options": {"when_busy": when_busy}})
        self.submitted.append(job_id)
        self.submissions.append(Submission(len(self.submitted), job))

    async def admit(self, at: int) -> None:
        """Deliver a submission to a router."""
        one = self.submissions[at] = replace(self.submissions[at], deliveries=self.submissions[at].deliveries + 1)
        body = one.job.model_dump_json().encode()
        delivery = Delivery(
            "SUBMIT", "r", one.sequence, one.deliveries, f"jobs.submit.{TENANT}", one.sequence, {}, body
        )
        _, handlers = self.router()
        try:
            messages = await handlers.submissions.on_submit(one.job, delivery)
        except Reject as error:
            messages = []
            await handlers.submissions.on_refused(delivery, error.code, str(error))
        for message in messages:
            await self.publish(message)
        self.submissions = [other for other in self.submissions if other.sequence != one.sequence]

    async def publish(self, message: Message, **_: Any) -> None:
        """Queue a ticket, as often as it is published: what is already queued only saves work."""
        if isinstance(message, RunJob):
            self._queued += 1
            self.tickets[self._queued] = (message, 0)

    async def settle(self, request: SettleJob, *_: Any) -> Any:
        """Ask a router to settle a job."""
        _, handlers = self.router()
        return await handlers.settlements.on_settle(request)

    async def forget(self, session: str) -> None:
        """Delete a session, where it is idle."""
        adapters, _ = self.router()
        with suppress(Conflict):
            await adapters.turns.on_delete(DeleteSession(tenant=TENANT, session_id=f"r{self.round}{session}"))

    # The executor

    async def deliver(self, sequence: int) -> None:
        """Deliver a ticket to an executor."""
        run, deliveries = self.tickets[sequence]
        self.tickets[sequence] = (run, deliveries + 1)
        ticket = Ticket(TENANT, run.job, run.at, sequence, deliveries + 1)
        jobs = JobLog(self.bus, TENANT, run.job)
        histories = SessionHistories(self.bus, kept_max_bytes=0)
        after = FollowUp(self.bus, Budgets(self.bus), histories, Children(self.bus))

        async def ack() -> None:
            self.reach()
            self.tickets.pop(sequence, None)

        message: Any = SimpleNamespace(ack=ack, nak=nothing, in_progress=nothing)
        head = await jobs.last()
        match judge(head, ticket):
            case Verdict.SETTLE:
                await after.ended(await self.job(run.job), message)
            case Verdict.PARKED:
                assert head is not None
                await after.parked(TENANT, head, head.events[-1], message)  # type: ignore[arg-type]
            case Verdict.STALE:
                await ack()
            case Verdict.CLAIM:
                assert head is not None
                writer = await Claims(histories).claim(jobs, head, ticket, 1)
                assert writer is not None
                held = HeldJob(self.bus, ticket, message, writer, draining=asyncio.Event(), heartbeats=Heartbeats(3600))
                services: Any = SimpleNamespace(follow_up=after, histories=histories)
                with suppress(ClaimLost):
                    await run_job.run_job(services, held)
            case Verdict.FORGET:
                pass

    async def call_model(self, run: JobRun, action: CallModel) -> tuple[log_writer.Draft, ...]:
        """Answer at once."""
        card = run.writer.job.routing.card
        attempt = ids.attempt_id(TENANT, run.writer.job.job_id, action.step, action.attempt)
        named = {"step": action.step, "attempt": action.attempt, "attempt_id": attempt}
        run.writer.note(e.ModelRequested, **named, provider=card.provider, model=card.model, tools=())
        await run.writer.append(Failpoint.EXECUTOR_INTENT_BEFORE, Failpoint.EXECUTOR_INTENT_AFTER)
        message = AssistantMessage(text=f"This is the answer to {run.writer.job.job_id}.")
        ended = {"message": message, "usage": Usage(), "cost_usd": Decimal(0), "stop_reason": "end", "duration_ms": 1}
        return (log_writer.draft(e.ModelCompleted, **named, **ended),)

    # What the logs say

    async def events(self, job_id: str) -> list[e.Event]:
        return [event async for event in JobLog(self.bus, TENANT, job_id).read()]

    async def job(self, job_id: str) -> Any:
        return fold(await self.events(job_id))

    async def check(self) -> None:
        """Check that no turn's model was asked before the turns before it had ended."""
        asked_at: dict[str, int] = {}
        ended_at: dict[str, int] = {}
        before: dict[str, str | None] = {}
        for job_id in self.submitted:
            log = JobLog(self.bus, TENANT, job_id)
            async for message in record_read(self.bus, log.subject):
                sequence = int((message.headers or {})["Nats-Sequence"])
                for event in read_record(message.data):
                    if isinstance(event, e.JobSubmitted) and event.turn is not None:
                        before[job_id] = event.turn.after
                    elif isinstance(event, e.ModelRequested):
                        asked_at.setdefault(job_id, sequence)
                    elif event.type in ENDS:
                        assert job_id not in ended_at, "two ends"
                        ended_at[job_id] = sequence
        for job_id, sequence in asked_at.items():
            earlier = before.get(job_id)
            while earlier is not None:
                assert ended_at.get(earlier, NEVER) < sequence, f"{job_id} began before the end of {earlier}"
                earlier = before.get(earlier)
        followed = [after for after in before.values() if after is not None]
        assert len(followed) == len(set(followed)), "two jobs come after one"


ENDS = {"job.completed", "job.failed", "job.cancelled"}
NEVER = 1 << 62


async def nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


@pytest.fixture
async def world(bus: Bus, office: Office, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(bus, office.store)
    PROCESS.set(Process())
    for module in (turns, settlements, first_records, log_writer, follow_up):
        monkeypatch.setattr(module, "reach", world.reach)
    monkeypatch.setitem(run_job.PERFORM, CallModel, world.call_model)
    monkeypatch.setattr(bus, "publish", world.mortal(world.publish))
    monkeypatch.setattr(bus, "ask", world.settle)
    monkeypatch.setattr(bus, "store", world.mortal(bus.store))
    for name in ("fetch", "fetchrow", "execute"):
        monkeypatch.setattr(office.store, name, world.mortal(getattr(office.store, name)))
    return world


async def step(world: World, chance: random.Random) -> None:
    """Do one thing, and maybe die or stall at it."""
    at = chance.randint(1, POINTS_MAX)
    again = chance.random() < AGAIN
    trouble = chance.choice([{}, {"dies_at": at}, {"stalls_in": at}])
    match chance.choices(range(5), weights=[2, 4, 6, 0.5, 2])[0]:
        case 0 if len(world.submitted) < JOBS_MAX:
            world.submit(chance.choice((*SESSIONS[:1], *SESSIONS)), chance.choice(["wait", "wait", "wait", "refuse"]))
        case 1 if waiting := [one.sequence for one in world.submissions if again or one.sequence not in world.taken]:
            sequence = chance.choice(waiting)
            at = [one.sequence for one in world.submissions].index(sequence)
            await world.run(world.holding(sequence, world.admit(at)), **trouble)
        case 2 if waiting := [sequence for sequence in world.tickets if again or sequence not in world.taken]:
            sequence = chance.choice(waiting)
            await world.run(world.holding(sequence, world.deliver(sequence)), **trouble)
        case 3:
            await world.run(world.forget(chance.choice(SESSIONS)), **trouble)
        case 4 if world.stalled:
            await world.go_on(chance.randrange(len(world.stalled)))
        case _:
            pass


async def calm_down(world: World) -> None:
    """Deliver all that is queued, with nobody dying."""
    for _ in range(QUIET_AFTER):
        if world.stalled:
            await world.go_on()
        elif world.submissions:
            await world.run(world.admit(0))
        elif world.tickets:
            await world.run(world.deliver(next(iter(world.tickets))))
        else:
            return
    raise AssertionError(f"still queued: {world.tickets}")


async def check_ends(world: World) -> None:
    """Check that every job has ended, and went on from what its session had said before."""
    await world.check()
    for job_id in world.submitted:
        events = await world.events(job_id)
        head = await JobLog(world.bus, TENANT, job_id).last()
        assert head is not None
        assert head.state is State.ENDED, f"{job_id} was never woken"
        end = fold(events).session.history_end
        history = None if end is None else await read_history(world.bus, TENANT, end)
        assert replay(events, history=history).divergence is None


@pytest.mark.parametrize("seed", range(6))
async def test_a_session_runs_one_job_at_a_time_whoever_dies(world: World, seed: int):
    chance = random.Random(seed)
    for number in range(ROUNDS):
        world.begin(number)
        for _ in range(STEPS):
            await step(world, chance)
            await world.check()
        await calm_down(world)
        await check_ends(world)
