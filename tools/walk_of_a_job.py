"""Counts how one job walks through the executor's files: one model call, one tool call, one more model call.

Each function that is entered belongs to a file. The walk is the sequence of these files; entering a file that the walk
has been in and has left is a return. A call from a layer into one above it, in the order of pyproject.toml, is
upward, and none may be.
Run it: `.venv/bin/python tools/walk_of_a_job.py [--walk]`.
"""

from __future__ import annotations

import asyncio
import dis
import re
import sys
import tomllib
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import cache
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any

from nats.aio.msg import Msg

from wayline.chassis import Ask, Bus, BusSettings
from wayline.chassis.declare import declare
from wayline.chassis.handling.responder import Responder
from wayline.chassis.stream_limits import Limits
from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.agents import AgentConfig
from wayline.contracts.budgets import Settled, SettleJob
from wayline.contracts.jobs import Route, RunJob, SubmitJob
from wayline.contracts.models import ModelCard
from wayline.contracts.tools import CallTool, ListTools, ToolDefinition, ToolList, ToolReply
from wayline.embedded import NatsServer
from wayline.embedded.nats import minimal_config
from wayline.executor import __file__ as EXECUTOR
from wayline.executor.app import build
from wayline.executor.settings import Settings
from wayline.journal import JobLog, follow
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.telemetry import BusExporter, Telemetry

TENANT, JOB = "default", "walk"
ROOT = str(Path(EXECUTOR).parent)
PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
SCRIPT = turns(Say(tools=(("look_up", {}),)), Say(text="Found."))
CARD = ModelCard(provider="chat", model="one", tier="standard")


class Walk:
    """Notes the executor's file of each function that is entered."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self.calls: set[tuple[str, str]] = set()
        """Which file has called which."""

    def __enter__(self) -> Walk:
        sys.setprofile(self._on_call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _on_call(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT) and frame.f_lasti <= first_instruction(code):
            self.entered.append(_file(code))
            caller = frame.f_back
            if caller is not None and caller.f_code.co_filename.startswith(ROOT):
                self.calls.add((_file(caller.f_code), _file(code)))

    @property
    def files(self) -> list[str]:
        """Return the walk: each file once for all functions entered in it before the next file."""
        return [name for name, _ in groupby(self.entered)]

    @property
    def upward(self) -> list[tuple[str, str]]:
        """Return the calls into a layer above the caller's."""
        heights = layers()
        return sorted((by, of) for by, of in self.calls if heights[_layer(of)] < heights[_layer(by)])


def layers() -> dict[str, int]:
    """Return how far below the top each layer of the executor is."""
    contracts = tomllib.loads(PYPROJECT.read_text())["tool"]["importlinter"]["contracts"]
    [ours] = [one["layers"] for one in contracts if one.get("containers") == ["wayline.executor"]]
    return {name: depth for depth, layer in enumerate(ours) for name in re.split(r"\s*[|:]\s*", layer)}


@cache
def _file(code: CodeType) -> str:
    return str(Path(code.co_filename).relative_to(ROOT))


def _layer(file: str) -> str:
    return file.partition("/")[0].removesuffix(".py")


@cache
def first_instruction(code: CodeType) -> int:
    """Return where a function begins; a coroutine that goes on after an `await` is further on."""
    return next(one.offset for one in dis.get_instructions(code) if one.opname == "RESUME" and not one.arg)


async def on_list(_: ListTools) -> ToolList:
    return ToolList(tools=(ToolDefinition(name="look_up", input_schema={"type": "object"}),))


async def on_call(_: CallTool) -> ToolReply:
    return ToolReply(status="success", content="42")


async def on_settle(_: SettleJob) -> Settled:
    return Settled(settled=True)


def first_record() -> list[e.Event]:
    """Return what the router writes of a job."""

    def stamp(seq: int) -> dict[str, Any]:
        trace = e.SpanRef(trace_id=ids.trace_id(TENANT, JOB), span_id=ids.job_span(TENANT, JOB))
        return {"job_id": JOB, "seq": seq, "at": datetime.now(UTC), "trace": trace}

    job = SubmitJob(tenant=TENANT, agent="a", input="What is it?")
    return [
        e.JobSubmitted(**stamp(1), tenant=TENANT, job=job, content_hash="c", reply_to=None),
        e.JobRouted(
            **stamp(2),
            agent="a",
            agent_version=1,
            config=AgentConfig(tools=("look_up",)),
            route=Route(provider=CARD.provider, model=CARD.model, tier=CARD.tier, reason="the only one"),
            limits=e.Limits(max_steps=5, max_seconds=60, max_output_tokens=100),
            candidates=e.Candidates(cards=(CARD,), slots={"primary": CARD.name}),
        ),
    ]


async def walk() -> Walk:
    """Run one job from its ticket to its ack."""
    async with AsyncExitStack() as stack:
        root = Path(stack.enter_context(TemporaryDirectory()))
        nats = await stack.enter_async_context(NatsServer(root, config=minimal_config(root / "jetstream")))
        settings = BusSettings(nats_url=nats.url, health_port=None)
        bus = await Bus.connect(settings, service="walk", exit_when_closed=False)
        stack.push_async_callback(bus.close)
        async for _ in declare(bus.js, Limits()):
            pass
        asks: list[Ask[Any]] = [Ask(ListTools, on_list), Ask(CallTool, on_call), Ask(SettleJob, on_settle)]
        for ask in asks:
            responder = Responder(bus, Telemetry("walk", BusExporter("walk")), ask)
            await responder.start()
            stack.push_async_callback(responder.stop, 0)
        chat = await stack.enter_async_context(ChatServer(SCRIPT))
        executor = await build(Settings(chat_base_url=chat.url), bus_settings=settings)
        await executor.start()
        stack.push_async_callback(executor.stop, 0.1)
        acked = asyncio.Event()

        async def on_ack(_: Msg) -> None:
            acked.set()

        await bus.nc.subscribe("$JS.ACK.RUN.>", cb=on_ack)
        head = await JobLog(bus, TENANT, JOB).begin(first_record(), content_hash="c", lane="interactive")
        with Walk() as walked:
            run = RunJob(tenant=TENANT, job=JOB, at=head.sequence, record=head.carried())
            await bus.publish(run, msg_id=run.msg_id)
            async for _ in follow(bus, TENANT, JOB):
                pass
            await acked.wait()
        return walked


if __name__ == "__main__":
    walked = asyncio.run(walk())
    files = walked.files
    if "--walk" in sys.argv:
        print("\n".join(files))
    print(f"{len(set(files))} files entered, {len(files) - len(set(files))} returns to a file that was left")
    entered = [layer for layer, _ in groupby(name.rpartition("/")[0] or name for name in files)]
    print(f"{len(set(entered))} layers entered, {len(entered) - len(set(entered))} returns to a layer that was left")
    print(f"{len(walked.calls)} pairs of files call each other, {len(walked.upward)} upward")
    sys.exit("\n".join(f"upward: {by} calls {of}" for by, of in walked.upward) or None)
