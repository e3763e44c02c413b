"""Executors on a real bus; the test writes the first record as a router would, and answers for its budgets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from nats.aio.msg import Msg

from wayline.chassis import Ask, Bus, Service
from wayline.chassis.responder import Responder
from wayline.chassis.topology import Limits, declare
from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.agents import AgentConfig
from wayline.contracts.budgets import ExtendBudget, Extended, ReleaseBudget, Released, Settled, SettleJob
from wayline.contracts.jobs import JobOptions, JobView, Route, RunJob, Signal, SubmitJob
from wayline.contracts.models import ModelCard, Prices, Rates
from wayline.executor.app import build
from wayline.executor.settings import Settings
from wayline.journal import Head, Job, JobLog, fold, follow, view
from wayline.simulator.chat_server import ChatServer
from wayline.telemetry import BusExporter, Telemetry
from wayline.testkit import until
from wayline.testkit.guarded import ADMIN, Guarded

PRICES = Prices(rates=Rates(input=Decimal(1), output=Decimal(10)))
CARDS = tuple(
    ModelCard(provider="chat", model=model, tier="standard", prices=PRICES) for model in ("one", "two", "three")
)
OFFLINE = ModelCard(provider="offline", model="offline", tier="flash")
ACK_WAIT_S = 1.0


@dataclass
class Purse:
    """A router's answers about money, and every request kept."""

    grants: int = 0
    """So many more requests are granted."""
    deciding: Callable[[], Awaitable[None]] | None = None
    """What else happens before the next request is answered."""
    asked: list[Any] = field(default_factory=list)
    held: dict[str, Decimal] = field(default_factory=dict)

    async def on_extend(self, asked: ExtendBudget) -> Extended:
        self.asked.append(asked)
        held = self.held.get(asked.job_id, Decimal(0))
        assert asked.total_usd is not None
        granted, self.grants = self.grants > 0, max(self.grants - 1, 0)
        deciding, self.deciding = self.deciding, None
        if deciding is not None:
            await deciding()
        held = self.held[asked.job_id] = max(asked.total_usd, held) if granted else held
        return Extended(granted=granted, held_usd=held, left_usd=Decimal(0), limited_by="" if granted else "march")

    async def on_release(self, asked: ReleaseBudget) -> Released:
        self.asked.append(asked)
        released = self.held.get(asked.job_id, Decimal(0)) - asked.spent_usd
        self.held[asked.job_id] = asked.spent_usd
        return Released(released_usd=released)

    async def on_settle(self, asked: SettleJob) -> Settled:
        self.asked.append(asked)
        return Settled(settled=True)

    def of(self, kind: type) -> list[Any]:
        return [asked for asked in self.asked if isinstance(asked, kind)]


@dataclass
class Stage:
    """A bus, the executors on it, and the jobs that the test begins."""

    nats: Guarded
    bus: Bus
    purse: Purse
    executors: list[Service] = field(default_factory=list)

    async def executor(self, chat: ChatServer, *, key: str | None = None) -> Service:
        return await self.start(Settings(chat_base_url=chat.url, chat_api_key=key))

    async def start(self, settings: Settings) -> Service:
        service = await build(settings, bus_settings=self.nats.settings("executor"))
        await service.start()
        self.executors.append(service)
        return service

    async def begin(
        self,
        job_id: str,
        model: str = "chat/one",
        *,
        config: AgentConfig | None = None,
        options: JobOptions | None = None,
        fallbacks: tuple[str, ...] = (),
        cards: tuple[ModelCard, ...] = CARDS,
        held_usd: Decimal | None = None,
        classifier: str | None = None,
        tasks: dict[str, Route | None] | None = None,
        more: tuple[e.Event, ...] = (),
        ticket: bool = True,
        reply_to: str | None = None,
        **limits: Any,
    ) -> Head:
        """Write a job's first record, and its ticket."""
        provider, _, name = model.partition("/")
        job = SubmitJob(tenant="default", agent="a", input="why?", options=options or JobOptions())
        submitted = e.JobSubmitted(**stamp(job_id, 1), tenant="default", job=job, content_hash="c", reply_to=reply_to)
        routed = e.JobRouted(
            **stamp(job_id, 2),
            agent="a",
            agent_version=1,
            config=config or AgentConfig(tools=()),
            route=Route(provider=provider, model=name, tier="standard", reason="r", classifier=classifier),
            limits=e.Limits(**{"max_steps": 5, "max_seconds": 60, "max_output_tokens": 100, **limits}),
            candidates=e.Candidates(
                cards=(*cards, OFFLINE), slots={"primary": model}, fallbacks=fallbacks, tasks=tasks or {}
            ),
            held_usd=held_usd,
        )
        log = JobLog(self.bus, "default", job_id)
        head = await log.begin([submitted, routed], content_hash="c", lane="interactive")
        if ticket:
            await self.ticket(job_id, head)
        return head

    async def ticket(self, job_id: str, head: Head) -> int:
        """Queue a job as the router does: a head that has just been begun brings its record."""
        run = RunJob(tenant="default", job=job_id, at=head.sequence, record=head.carried())
        return (await self.bus.publish(run, msg_id=run.msg_id)).seq

    async def until_no_tickets(self) -> None:
        async def so() -> bool:
            return (await self.bus.js.stream_info("RUN")).state.messages == 0

        await until(so, why="every ticket is acked")

    async def signal(self, job_id: str, said: Any) -> int:
        return (
            await self.bus.publish(Signal(tenant="default", job_id=job_id, signal=said), msg_id=ids.new_id("s"))
        ).seq

    async def wake(self, job_id: str) -> None:
        """What a router does about a signal for a parked job."""
        head = await JobLog(self.bus, "default", job_id).last()
        assert head is not None
        await self.ticket(job_id, head)

    async def events(self, job_id: str) -> list[e.Event]:
        return [event async for event in JobLog(self.bus, "default", job_id).read()]

    async def job(self, job_id: str) -> Job:
        return fold(await self.events(job_id))

    async def until_writing(self, job_id: str) -> None:
        """Wait until a model writes the job's answer."""
        seen: list[str] = []

        async def hear(message: Msg) -> None:
            seen.append(message.subject)

        await self.bus.nc.subscribe(f"deltas.default.{job_id}", cb=hear)
        await until(lambda: len(seen) >= 2, why="the model is writing")

    async def ended(self, job_id: str) -> JobView:
        async for _ in follow(self.bus, "default", job_id):
            pass
        return view(await self.job(job_id))

    async def failed(self, job_id: str) -> list[e.ModelFailed]:
        return [event for event in await self.events(job_id) if isinstance(event, e.ModelFailed)]

    async def claimed(self, job_id: str, head: Head, *events: e.Event, owner: str) -> Head:
        """Write the record of a holder that is gone."""
        log = JobLog(self.bus, "default", job_id)
        claim = e.JobClaimed(**stamp(job_id, head.seq + 1), executor="gone", epoch=1, owner=owner, attempt=1)
        return await log.append([claim, *events], head, owner=owner, attempt=1, epoch=1)

    async def until_parked(self, job_id: str, *, times: int) -> None:
        async def so() -> bool:
            return sum(isinstance(event, e.JobParked) for event in await self.events(job_id)) == times

        await until(so, why=f"{job_id} has parked {times} times")

    async def parked(self, job_id: str) -> Job:
        """Wait until a job is parked and its ticket let go."""

        async def so() -> bool:
            left = (await self.bus.js.stream_info("RUN")).state.messages
            return not left and (await self.job(job_id)).waiting is not None

        await until(so, why=f"{job_id} is parked")
        return await self.job(job_id)


def stamp(job_id: str, seq: int) -> dict[str, Any]:
    trace = e.SpanRef(trace_id=ids.trace_id("default", job_id), span_id=ids.job_span("default", job_id))
    return {"job_id": job_id, "seq": seq, "at": datetime.now(UTC), "trace": trace}


@pytest.fixture
async def stage(guarded_nats: Guarded) -> AsyncIterator[Stage]:
    bus = await Bus.connect(guarded_nats.settings(ADMIN), service="router", exit_when_closed=False)
    async for _ in declare(bus.js, Limits(ack_wait_s=ACK_WAIT_S, memory=True)):
        pass
    purse = Purse()
    telemetry = Telemetry("router", BusExporter("router"))
    asks = [Ask(ExtendBudget, purse.on_extend), Ask(ReleaseBudget, purse.on_release), Ask(SettleJob, purse.on_settle)]
    async with AsyncExitStack() as ends:
        for ask in asks:
            answering = Responder(bus, telemetry, ask)
            await answering.start()
            ends.push_async_callback(answering.stop, 0)
        await bus.settled()
        stage = Stage(guarded_nats, bus, purse)
        yield stage
        for service in stage.executors:
            await service.stop(0.1)
    await bus.close()
