"""Executors on a real bus; the test writes the first record as a router would, and answers for its budgets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from nats.aio.msg import Msg

from wayline.chassis import Ask, Service
from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.agents import AgentConfig
from wayline.contracts.budgets import ExtendBudget, Extended, ReleaseBudget, Released, Settled, SettleJob
from wayline.contracts.jobs import JobOptions, Route, RunJob, SubmitJob
from wayline.contracts.models import ModelCard, Prices, Rates
from wayline.executor.settings import Settings
from wayline.journal import Head, JobLog
from wayline.simulator.chat_server import ChatServer
from wayline.testkit import Platform, until
from wayline.testkit.guarded import Guarded

PRICES = Prices(rates=Rates(input=Decimal(1), output=Decimal(10)))
CARDS = tuple(
    ModelCard(provider="chat", model=model, tier="standard", prices=PRICES) for model in ("one", "two", "three")
)
OFFLINE = ModelCard(provider="offline", model="offline", tier="flash")


@dataclass
class BudgetAnswers:
    """What a router answers about money, and every request kept."""

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


class ExecutorPlatform(Platform):
    """A platform of executors: the test writes what the router would, and answers for its budgets."""

    budgets: BudgetAnswers

    async def executor(self, chat: ChatServer, *, key: str | None = None) -> Service:
        """Start an executor whose models are played by a chat server."""
        return await self.start("executor", executor=Settings(chat_base_url=chat.url, chat_api_key=key))

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

    async def wake(self, job_id: str) -> None:
        """Queue a parked job as a router does on a signal."""
        head = await JobLog(self.bus, "default", job_id).last()
        assert head is not None
        await self.ticket(job_id, head)

    async def until_writing(self, job_id: str) -> None:
        """Wait until a model writes the job's answer."""
        seen: list[str] = []

        async def hear(message: Msg) -> None:
            seen.append(message.subject)

        await self.bus.nc.subscribe(f"deltas.default.{job_id}", cb=hear)
        await until(lambda: len(seen) >= 2, why="the model is writing")

    async def claimed(self, job_id: str, head: Head, *events: e.Event, owner: str) -> Head:
        """Write the record of a holder that is gone."""
        log = JobLog(self.bus, "default", job_id)
        claim = e.JobClaimed(**stamp(job_id, head.seq + 1), executor="gone", epoch=1, owner=owner, attempt=1)
        return await log.append([claim, *events], head, owner=owner, attempt=1, epoch=1)

    async def until_parked(self, job_id: str, *, times: int) -> None:
        async def so() -> bool:
            return len(await self.events_of(job_id, e.JobParked)) == times

        await until(so, why=f"{job_id} has parked {times} times")


def stamp(job_id: str, seq: int) -> dict[str, Any]:
    trace = e.SpanRef(trace_id=ids.trace_id("default", job_id), span_id=ids.job_span("default", job_id))
    return {"job_id": job_id, "seq": seq, "at": datetime.now(UTC), "trace": trace}


@pytest.fixture
async def platform(guarded_nats: Guarded) -> AsyncIterator[ExecutorPlatform]:
    async with ExecutorPlatform.open(guarded_nats) as platform:
        budgets = platform.budgets = BudgetAnswers()
        await platform.answer(
            Ask(ExtendBudget, budgets.on_extend),
            Ask(ReleaseBudget, budgets.on_release),
            Ask(SettleJob, budgets.on_settle),
        )
        yield platform
