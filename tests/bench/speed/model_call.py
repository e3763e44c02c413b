"""What one model call costs the executor, all that belongs to it, beside what the bare SDK needs for the same call."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from wayline.contracts.chat import AssistantMessage, ChatMessage, TextPart, ToolCall, ToolMessage, UserMessage
from wayline.contracts.models import ModelCard
from wayline.contracts.tools import ToolDefinition
from wayline.journal import JobLog
from wayline.llm import ModelRequest

from ..adapters.ways import OURS as ADAPTER
from ..adapters.ways import RAW, TYPED, WIRES, Call, Ways
from . import floor
from .bench_platform import INSTRUCTIONS, BenchPlatform
from .load import OURS, TASK, Client

CALLS = 8
IN_FLIGHT = 32
PHASE_S = 3.0
SDK_CALLS = 640
MODEL = f"bench-0-{CALLS}x1"


@dataclass(frozen=True)
class ModelCall:
    """ms of CPU a call."""

    executor: float
    """Of a step with its tool calls taken off: prompt, request, stream, records, what is decided and told."""
    adapter: float
    typed: float
    raw: float

    @property
    def beyond(self) -> float:
        return self.executor - self.adapter


async def measure(platform: BenchPlatform, client: Client) -> ModelCall:
    """Jobs with eight tool calls, in eight steps or in one: what seven more model calls cost is the difference."""
    apart, together = [await _jobs(platform, client, plan) for plan in (f"{CALLS}x1", f"1x{CALLS}")]
    assert apart.tool_calls == together.tool_calls == CALLS, (apart, together)
    executor = (apart.cpu_ms - together.cpu_ms) / (apart.model_calls - together.model_calls)
    ways = Ways(WIRES["chat"], platform.model_url, _midway())
    try:
        cost = {name: await _cpu_ms(call) for name, call in ways.calls.items()}
    finally:
        await ways.close()
    return ModelCall(executor, cost[ADAPTER], cost[TYPED], cost[RAW])


@dataclass(frozen=True)
class _Jobs:
    """The executor's CPU a job, and what a job consists of."""

    cpu_ms: float
    model_calls: int
    tool_calls: int


async def _jobs(platform: BenchPlatform, client: Client, plan: str) -> _Jobs:
    await client.keep(OURS, IN_FLIGHT, seconds=1.0, plan=plan)
    before = platform.cpu_ms()["executor"]
    load = await client.keep(OURS, IN_FLIGHT, seconds=PHASE_S, plan=plan)
    cpu_ms = (platform.cpu_ms()["executor"] - before) / len(load.done_at)
    told = [event.type async for event in JobLog(platform.bus, "default", next(iter(load.published))).read()]
    return _Jobs(cpu_ms, told.count("model.completed"), told.count("tool.completed"))


def _midway() -> ModelRequest:
    """What such a job sends in the middle of its steps."""
    messages: list[ChatMessage] = [UserMessage(parts=(TextPart(text=TASK),))]
    for _ in range(CALLS // 2):
        call = ToolCall(call="1", tool=floor.TOOL["name"], arguments={}, provider_id="call_0")
        messages += [
            AssistantMessage(tool_calls=(call,)),
            ToolMessage(call="1", tool=floor.TOOL["name"], content="2026-01-05T09:00:00+00:00"),
        ]
    tool = ToolDefinition(
        name=floor.TOOL["name"], description=floor.TOOL["description"], input_schema=floor.TOOL["parameters"]
    )
    card = ModelCard(provider="chat", model=MODEL, tier="standard")
    return ModelRequest(card, INSTRUCTIONS, tuple(messages), (tool,), 1_000, "bench")


async def _cpu_ms(call: Call) -> float:
    """CPU of this process per call; the first round only warms up."""

    async def some(calls: int) -> None:
        for _ in range(calls // IN_FLIGHT):
            await call()

    await asyncio.gather(*(some(IN_FLIGHT) for _ in range(IN_FLIGHT)))
    began = time.process_time()
    await asyncio.gather(*(some(SDK_CALLS) for _ in range(IN_FLIGHT)))
    return (time.process_time() - began) * 1_000 / SDK_CALLS
