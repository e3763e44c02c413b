"""Resuming a long job from nothing: its log read back and folded."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage, ToolCall
from wayline.contracts.jobs import Route, SubmitJob
from wayline.contracts.money import Usage
from wayline.contracts.tools import Effect
from wayline.journal import Head, JobLog, bulk_read, fold

from .bench_platform import BenchPlatform

STEPS = 300
RESULT_BYTES = 5_000
CONVERSATION_TOKENS = 200_000
BYTES_PER_TOKEN = 4
JOB_ID = "long"
HASH = "0" * 32


@dataclass(frozen=True)
class Cold:
    log_mb: float
    records: int
    requests: int
    seconds: float
    tokens: int


async def resume(platform: BenchPlatform) -> Cold:
    """Write the log of a job of 300 tool calls, then take it up as an executor that never saw it."""
    log = JobLog(platform.bus, "default", JOB_ID)
    await _write(log)
    asked, started = platform.bus.nc.stats["out_msgs"], time.perf_counter()
    head = await log.last()
    assert head is not None
    records = await log.records(head.sequence)
    job = fold(e.read_event(value) for record in records for value in record)
    seconds, requests = time.perf_counter() - started, platform.bus.nc.stats["out_msgs"] - asked
    size = 0
    async for message in bulk_read(platform.bus, "EVENTS", log.subject, upto=head.sequence):
        size += len(message.data)
    chars = sum(len(message.model_dump_json()) for message in job.conversation.messages)
    return Cold(size / 1024**2, len(records), requests, seconds, chars // BYTES_PER_TOKEN)


async def _write(log: JobLog) -> None:
    words = "measure twice, cut once; "
    told = CONVERSATION_TOKENS * BYTES_PER_TOKEN // STEPS
    thought = (words * (told // len(words) + 1))[: max(100, told - RESULT_BYTES)]
    result = (words * (RESULT_BYTES // len(words) + 1))[:RESULT_BYTES]
    writer = _Writer(log)
    await writer.begin()
    for step in range(1, STEPS + 1):
        name = {"step": step, "attempt": 1, "attempt_id": ids.attempt_id("default", JOB_ID, step, 1)}
        call = ToolCall(call="1", tool="read_page", arguments={"page": step})
        await writer.add(e.ModelRequested(**writer.stamp(), **name, provider="chat", model="bench"))
        done = e.ModelCompleted(
            **writer.stamp(),
            **name,
            message=AssistantMessage(text=thought, tool_calls=(call,)),
            usage=Usage(input=1_000, output=600),
            cost_usd=Decimal("0.01"),
            stop_reason="tool_calls",
            duration_ms=1_000.0,
        )
        named = {"step": step, "call": "1", "tool": "read_page"}
        key = ids.tool_key("default", JOB_ID, step, "1")
        asked = e.ToolRequested(**writer.stamp(), **named, arguments={"page": step}, effect=Effect.READ, key=key)
        await writer.add(done, asked)
        ended = e.ToolCompleted(**writer.stamp(), **named, status="success", content=result, size_bytes=RESULT_BYTES)
        await writer.add(ended)


class _Writer:
    """Numbers and appends events as a holder would."""

    def __init__(self, log: JobLog) -> None:
        self._log = log
        self._head: Head | None = None
        self._seq = 0
        self._trace = e.SpanRef(trace_id=ids.trace_id("default", JOB_ID), span_id=ids.job_span("default", JOB_ID))

    def stamp(self) -> dict[str, Any]:
        self._seq += 1
        return {"job_id": JOB_ID, "seq": self._seq, "at": datetime.now(UTC), "trace": self._trace}

    async def begin(self) -> None:
        job = SubmitJob(tenant="default", agent="bench", input="Read all the pages.", job_id=JOB_ID)
        submitted = e.JobSubmitted(**self.stamp(), tenant="default", job=job, content_hash=HASH)
        routed = e.JobRouted(
            **self.stamp(),
            agent="bench",
            agent_version=1,
            config=AgentConfig(),
            route=Route(provider="chat", model="bench", tier="standard", reason="the job asked for it"),
            limits=e.Limits(max_steps=1_000, max_seconds=3_600, max_output_tokens=4_096),
        )
        self._head = await self._log.begin([submitted, routed], content_hash=HASH, lane="interactive")

    async def add(self, *events: e.Event) -> None:
        assert self._head is not None
        self._head = await self._log.append(events, self._head)
