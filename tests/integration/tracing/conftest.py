"""A bus, a database, and a hand that writes job logs into EVENTS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from wayline.chassis import Bus, BusSettings, Service, topology
from wayline.chassis.stream_limits import Limits
from wayline.contracts import events as e
from wayline.contracts import headers as h
from wayline.contracts import ids
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage, ToolCall
from wayline.contracts.jobs import Failure, JobOptions, Lane, Route, SubmitJob, Waiting
from wayline.contracts.money import Usage
from wayline.contracts.tools import Effect, ToolError
from wayline.contracts.traces import GetTrace, Span, Trace
from wayline.journal import Head, State, encode
from wayline.journal.record import state_after
from wayline.store import Store
from wayline.telemetry import JobTrace, Telemetry
from wayline.telemetry.otlp import encode_spans
from wayline.testkit import Database, Platform, until
from wayline.testkit.guarded import Guarded
from wayline.tracing.settings import Settings

QUICK = Settings(linger_ms=5, gauges_every_s=0.1)


class TracingPlatform(Platform):
    """A platform for tracing: its tables, and what a client reads of them."""

    tables: Store
    settings: BusSettings
    """How tracing connects."""

    async def trace(self, job_id: str, *, tenant: str = "acme") -> Trace:
        return await self.bus.ask(GetTrace(tenant=tenant, job_id=job_id), Trace)

    async def rows(self, sql: str) -> list[dict[str, Any]]:
        async with self.tables.system() as conn:
            return [dict(row) for row in await conn.fetch(sql)]

    async def seq(self, job_id: str) -> int:
        found = await self.rows(f"SELECT seq FROM jobs WHERE job_id = '{job_id}'")
        return found[0]["seq"] if found else 0

    async def send_spans(self, spans: Sequence[ReadableSpan]) -> bytes:
        body = encode_spans(spans)
        await self.bus.store("telemetry.traces", body, {})
        return body

    async def wait_until_read(self) -> None:
        """Wait until tracing has acked everything there is."""

        async def idle() -> bool:
            for consumer in (topology.EVENTS_TRACING, topology.TELEMETRY_TRACING):
                info = await self.bus.js.consumer_info(consumer.stream, consumer.name)
                if info.num_pending or info.num_ack_pending:
                    return False
            return True

        await until(idle, within=60, why="tracing has read everything")


@pytest.fixture
async def platform(guarded_nats: Guarded, database: Database) -> AsyncIterator[TracingPlatform]:
    async with TracingPlatform.open(guarded_nats, database, limits=Limits()) as platform:
        dsn = await platform.migrate("tracing")
        platform.settings = guarded_nats.settings("tracing", postgres_dsn=dsn, drain_grace_s=2)
        platform.tables = await platform.store("tracing")
        yield platform


Start = Callable[..., Awaitable[Service]]


@pytest.fixture
def start(platform: TracingPlatform) -> Start:
    """Start tracing, as often as a test likes."""

    async def begin(settings: Settings = QUICK) -> Service:
        return await platform.start("tracing", tracing=settings)

    return begin


AS_RECORD = {h.RECORD: Head(0, State.ACTIVE, 1, "x").header()}
"""What makes a message of a log a record of ours."""


@dataclass
class Log:
    """One job's log, written by hand. Time passes by a second an event, unless told otherwise."""

    bus: Bus
    job_id: str = "j1"
    tenant: str = "acme"
    at: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=2))
    seq: int = 0

    def _say(self, kind: type[e.Event], **fields: Any) -> e.Event:
        self.seq += 1
        self.at += timedelta(seconds=1)
        ref = e.SpanRef(trace_id=ids.trace_id(self.tenant, self.job_id), span_id=ids.job_span(self.tenant, self.job_id))
        return kind(job_id=self.job_id, seq=self.seq, at=self.at, trace=ref, **fields)

    async def append(self, *events: e.Event) -> None:
        body, claimed = await self.bus.claims.check_in(encode(events), f"{self.tenant}/{self.job_id}")
        head = Head(0, state_after(State.ACTIVE, events), events[-1].seq, content_hash="x")
        headers = {h.RECORD: head.header(), **({h.CLAIMS: "1"} if claimed else {})}
        await self.bus.store(f"events.{self.tenant}.{self.job_id}", body, headers)

    def submitted(
        self,
        *,
        agent: str = "assistant",
        caller: str | None = None,
        user_id: str = "u1",
        lane: Lane = "interactive",
        tags: tuple[str, ...] | None = None,
    ) -> e.Event:
        options = JobOptions(lane=lane, tags=tags)
        job = SubmitJob(agent=agent, input="why?", user_id=user_id, session_id="s1", options=options)
        return self._say(e.JobSubmitted, tenant=self.tenant, job=job, content_hash="x", caller=caller)

    def routed(self) -> e.Event:
        return self._say(
            e.JobRouted,
            agent="assistant",
            agent_version=3,
            agent_label="candidate",
            config=AgentConfig(),
            route=Route(provider="anthropic", model="claude", tier="standard", reason="it is a question"),
            limits=e.Limits(max_steps=5, max_seconds=60, max_output_tokens=100),
        )

    def claimed(self, *, epoch: int = 1) -> e.Event:
        return self._say(e.JobClaimed, executor=f"x{epoch}", epoch=epoch, owner=f"1:{epoch}", attempt=1)

    def asked_model(self, step: int, attempt: int = 1) -> e.Event:
        attempt_id = ids.attempt_id(self.tenant, self.job_id, step, attempt)
        return self._say(
            e.ModelRequested, step=step, attempt=attempt, attempt_id=attempt_id, provider="anthropic", model="claude"
        )

    def model_answered(
        self,
        step: int,
        text: str = "",
        *,
        calls: tuple[str, ...] = (),
        attempt: int = 1,
        cost: str | None = "0.001",
    ) -> e.Event:
        return self._say(
            e.ModelCompleted,
            step=step,
            attempt=attempt,
            attempt_id=ids.attempt_id(self.tenant, self.job_id, step, attempt),
            message=AssistantMessage(
                text=text,
                tool_calls=tuple(ToolCall(call=c, tool="search", arguments={"q": c}) for c in calls),
            ),
            usage=Usage(input=10, cache_read=4, output=5),
            cost_usd=None if cost is None else Decimal(cost),
            stop_reason="end_turn",
            duration_ms=800,
            first_token_ms=200,
        )

    def model_failed(self, step: int, attempt: int = 1) -> e.Event:
        return self._say(
            e.ModelFailed,
            step=step,
            attempt=attempt,
            attempt_id=ids.attempt_id(self.tenant, self.job_id, step, attempt),
            error=Failure(code="overloaded", message="busy"),
            retryable=True,
            duration_ms=100,
        )

    def asked_tool(self, step: int, call: str = "1") -> e.Event:
        key = ids.tool_key(self.tenant, self.job_id, step, call)
        return self._say(
            e.ToolRequested, step=step, call=call, tool="search", arguments={"q": call}, effect=Effect.READ, key=key
        )

    def tool_answered(
        self, step: int, content: str = "found", *, call: str = "1", cost: str | None = None, failed: bool = False
    ) -> e.Event:
        return self._say(
            e.ToolCompleted,
            step=step,
            call=call,
            tool="search",
            status="failed" if failed else "success",
            content=content,
            error=ToolError(code="tool_failed", message="no luck") if failed else None,
            duration_ms=300,
            cost_usd=None if cost is None else Decimal(cost),
        )

    def parked(self) -> e.Event:
        return self._say(e.JobParked, waiting=Waiting(why="needs_decision", wait_id="w1"), signals_seen=0)

    def resumed(self) -> e.Event:
        return self._say(e.JobResumed)

    def completed(self, answer: str = "because", **more: Any) -> e.Event:
        return self._say(e.JobCompleted, answer=answer, **more)

    def failed(self) -> e.Event:
        return self._say(e.JobFailed, error=Failure(code="unknown_agent", message="no such agent"))

    def cancelled(self) -> e.Event:
        return self._say(e.JobCancelled, reason="enough")

    async def whole(self, *, user_id: str = "u1") -> None:
        """A job with one tool call and two model calls, from its beginning to its end, in six records."""
        await self.append(self.submitted(user_id=user_id), self.routed())
        await self.append(self.claimed(), self.asked_model(1))
        await self.append(self.model_answered(1, "let me look", calls=("1",)), self.asked_tool(1))
        await self.append(self.tool_answered(1, cost="0.01"), self.asked_model(2))
        await self.append(self.model_answered(2, "because"))
        await self.append(self.completed())


@dataclass
class ExportedSpans(SpanProcessor):
    """A service that makes spans under a job's log-made spans."""

    service: str = "tool_registry"

    def __post_init__(self) -> None:
        self.finished: list[ReadableSpan] = []
        self.telemetry = Telemetry(self.service, self)

    def on_end(self, span: ReadableSpan) -> None:
        self.finished.append(span)

    def handling(self, job_trace: JobTrace, template: str = "tools.call.{tenant}") -> Any:
        return self.telemetry.handling(template, job_trace.headers(), job_trace=job_trace)


def flat(span: Span) -> list[Span]:
    """A tree's spans, parents first."""
    return [span, *(below for child in span.children for below in flat(child))]


def outline(span: Span, depth: int = 0) -> list[str]:
    """A tree as indented names."""
    return ["  " * depth + span.name, *(line for child in span.children for line in outline(child, depth + 1))]
