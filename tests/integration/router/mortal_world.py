"""Real routers and executors on queues in memory, over a real bus and database, that die or stall at any write.

A process dies before or after any of its writes to either, and at any failpoint; what it had not acked comes again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from wayline.chassis import Bus, Delivery, Failpoint
from wayline.chassis.controls import Controls
from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.base import Message
from wayline.contracts.budgets import ReleaseBudget, SettleJob
from wayline.contracts.chat import AssistantMessage
from wayline.contracts.errors import Reject
from wayline.contracts.jobs import RunJob, StartChild, SubmitJob, WakeJob
from wayline.contracts.money import Usage
from wayline.contracts.tools import ToolDefinition
from wayline.executor import run_job
from wayline.executor.adapters.budgets import Budgets
from wayline.executor.adapters.children import Children
from wayline.executor.adapters.permits import Permits
from wayline.executor.adapters.session_histories import SessionHistories
from wayline.executor.claim_jobs import JobClaims
from wayline.executor.decide.actions import CallModel
from wayline.executor.decide.approvals import judge_decision
from wayline.executor.decide.children import Limits
from wayline.executor.decide.client_calls import end_calls
from wayline.executor.hold import log_writer
from wayline.executor.hold.claim import Ticket, Verdict, judge
from wayline.executor.hold.held_job import HeldJob
from wayline.executor.hold.job_heartbeats import Heartbeats
from wayline.executor.hold.log_writer import ClaimLost
from wayline.executor.hold.signals import Meanings
from wayline.executor.hold.ticket_end import Acked
from wayline.executor.perform.follow_up import FollowUp
from wayline.executor.perform.job_run import JobRun
from wayline.journal import Job, JobLog, fold
from wayline.router.settings import Settings
from wayline.router.wiring import Handlers, Rooms
from wayline.store import Store

from .conftest import TENANT

QUIET_AFTER = 400
"""Deliveries after which every job has ended where nobody dies any more."""
ENDS = {"job.completed", "job.failed", "job.cancelled"}


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
        # What they raise on their way out is nobody's any more.
        await asyncio.gather(*self._hanging, return_exceptions=True)


PROCESS: ContextVar[Process] = ContextVar("process")


class MortalWorld:
    """Queues of submissions and tickets, and processes that take from them."""

    def __init__(self, bus: Bus, store: Store) -> None:
        self.bus = bus
        self.store = store
        self._queued = 100
        self.begin(0)

    def begin(self, round_number: int) -> None:
        """Begin again, with other jobs."""
        self.round = round_number
        self.submissions: list[Submission] = []
        self.tickets: dict[int, tuple[RunJob, int]] = {}
        """By sequence, with how often each was delivered."""
        self.taken: set[int] = set()
        """Sequences of what a living process has in hand: it seldom comes a second time meanwhile."""
        self.submitted: list[str] = []
        self.stalled: list[tuple[Process, asyncio.Task[None]]] = []

    def put_in_place(self, patch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
        """Have the bus, the tables, the model, and the failpoints of these modules be this world's."""
        PROCESS.set(Process())
        for module in modules:
            patch.setattr(module, "reach", self.reach)
        patch.setitem(run_job.PERFORM, CallModel, self.call_model)
        patch.setattr(self.bus, "publish", self.mortal(self.publish))
        patch.setattr(self.bus, "ask", self.ask)
        patch.setattr(self.bus, "store", self.mortal(self.bus.store))
        for name in ("fetch", "fetchrow", "execute"):
            patch.setattr(self.store, name, self.mortal(getattr(self.store, name)))

    def queue(self, job: SubmitJob) -> None:
        """Store another submission."""
        assert job.job_id is not None
        self.submitted.append(job.job_id)
        self.submissions.append(Submission(len(self.submitted), job))

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

    def router(self) -> tuple[Rooms, Handlers]:
        settings = Settings()
        rooms = Rooms.of(self.bus, self.store, settings, signals_per_tenant_max=100)
        return rooms, Handlers.of(self.bus, rooms, settings)

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

    async def ask(self, request: Any, *_: Any, **__: Any) -> Any:
        """Answer an executor as a router does."""
        handlers = self.router()[1]
        match request:
            case SettleJob():
                return await handlers.settlements.on_settle(request)
            case StartChild():
                return await handlers.children.on_start(request)
            case WakeJob():
                return await handlers.signals.on_wake(request)
            case ReleaseBudget():
                return await handlers.money.on_release(request)
            case _:
                raise AssertionError(f"nobody answers {type(request).__name__}")

    # The executor

    async def deliver(self, sequence: int) -> None:
        """Deliver a ticket to an executor."""
        run, deliveries = self.tickets[sequence]
        self.tickets[sequence] = (run, deliveries + 1)
        ticket = Ticket(TENANT, run.job, run.at, sequence, deliveries + 1)
        jobs = JobLog(self.bus, TENANT, run.job)
        histories = SessionHistories(self.bus, kept_max_bytes=0)
        budgets, children = Budgets(self.bus), Children(self.bus)
        permits = Permits(self.bus, Controls(self.bus))
        after = FollowUp(self.bus, budgets, histories, children, permits)

        async def ack() -> None:
            self.reach()
            self.tickets.pop(sequence, None)

        message: Any = SimpleNamespace(ack=ack, nak=nothing, in_progress=nothing)
        head = await jobs.last()
        match judge(head, ticket):
            case Verdict.SETTLE:
                await after.ended(await self.job(run.job))
                await ack()
            case Verdict.PARKED:
                assert head is not None
                await after.parked(TENANT, head, head.events[-1])  # type: ignore[arg-type]
                await ack()
            case Verdict.STALE:
                await ack()
            case Verdict.CLAIM:
                assert head is not None
                services: Any = SimpleNamespace(
                    follow_up=after,
                    histories=histories,
                    budgets=budgets,
                    permits=permits,
                    children=children,
                    child_limits=Limits(depth_max=3, per_step_max=8, per_job_max=20),
                    decision_ttl_s=3600,
                    result_tokens_max=1000,
                )
                with suppress(ClaimLost):
                    writer = await JobClaims(histories).claim(jobs, head, ticket, 1)
                    assert writer is not None
                    beats = Heartbeats(3600)
                    meanings = Meanings(judge_decision, partial(end_calls, tokens_max=services.result_tokens_max))
                    parts = {"draining": asyncio.Event(), "heartbeats": beats, "meanings": meanings}
                    held = HeldJob(self.bus, ticket, message, writer, **parts)
                    if isinstance(await run_job.run_job(services, held), Acked):
                        await ack()
            case Verdict.FORGET:
                pass

    async def call_model(self, run: JobRun, action: CallModel) -> tuple[log_writer.Draft, ...]:
        """Answer at once."""
        job = run.writer.job
        card = job.routing.card
        attempt = ids.attempt_id(TENANT, job.job_id, action.step, action.attempt)
        named = {"step": action.step, "attempt": action.attempt, "attempt_id": attempt}
        tools = self.tools_of(job) if job.tools.offered is None else None
        run.writer.note(e.ModelRequested, **named, provider=card.provider, model=card.model, tools=tools)
        await run.writer.append(Failpoint.EXECUTOR_INTENT_BEFORE, Failpoint.EXECUTOR_INTENT_AFTER)
        message = self.answer(run.writer.job, action.step)
        ended = {"message": message, "usage": Usage(), "cost_usd": Decimal(0), "stop_reason": "end", "duration_ms": 1}
        return (log_writer.draft(e.ModelCompleted, **named, **ended),)

    def tools_of(self, _: Job) -> tuple[ToolDefinition, ...]:
        """Return what the first call of a job is offered."""
        return ()

    def answer(self, job: Job, _: int) -> AssistantMessage:
        """Return what the model says at a step."""
        return AssistantMessage(text=f"This is the answer to {job.job_id}.")

    async def settle_down(self) -> None:
        """Deliver all that is queued, with nobody dying."""
        for _ in range(QUIET_AFTER):
            if not await self.deliver_one():
                return
        raise AssertionError(f"still queued: {self.tickets}")

    async def deliver_one(self) -> bool:
        """Deliver the oldest of what is queued, and return whether anything was."""
        if self.stalled:
            await self.go_on()
        elif self.submissions:
            await self.run(self.admit(0))
        elif self.tickets:
            await self.run(self.deliver(next(iter(self.tickets))))
        else:
            return False
        return True

    # What the logs say

    async def events(self, job_id: str) -> list[e.Event]:
        return [event async for event in JobLog(self.bus, TENANT, job_id).read()]

    async def job(self, job_id: str) -> Any:
        return fold(await self.events(job_id))


async def nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""
