"""Services in this process, and the jobs that they hold."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from wayline.chassis import Service
from wayline.contracts import events as e
from wayline.executor.run_tickets import Lane
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.journal import Head, JobLog, State, read_record
from wayline.testkit import until
from wayline.tool_registry.settings import Settings as RegistrySettings

from ..conftest import LEASE_S
from ..platform import TENANT, FaultPlatform
from .wire import Wire, on

ALL = ("router", "tool_registry", "executor")


@asynccontextmanager
async def running(platform: FaultPlatform, *names: str) -> AsyncIterator[dict[str, Service]]:
    """Run services in this process."""
    executor = ExecutorSettings(chat_base_url=platform.chat.url, tool_wait_s=2)
    registry = RegistrySettings.model_validate(
        {"servers": [platform.effects.settings()], "lease_s": LEASE_S, "answer_within_s": 0.5}
    )
    started: list[str] = []
    try:
        for name in names:
            await platform.start(name, executor=executor, tool_registry=registry)
            started.append(name)
        yield platform.services
    finally:
        for name in started:
            await platform.stop(name, 0.1)


async def until_held(platform: FaultPlatform, name: str) -> None:
    await until(lambda: name in platform.holds, within=60, why=f"the model call {name} is under way")


def lane_of(executor: Service) -> Lane:
    """Return the lane of an executor that is asked first."""
    return next(part for part in executor.parts if isinstance(part, Lane))


async def until_let_go(platform: FaultPlatform, executor: Service, wire: Wire) -> None:
    """Wait until an executor has nothing in hand, and all that it said is heard."""
    lane = lane_of(executor)
    await until(lambda: not lane._held and not lane._puller.running, within=60, why="the holder has let go")
    # The server has got all that it said: what is published now is heard after it.
    await executor.bus.nc.flush()
    marker = f"marker.{len(wire.heard)}"
    await platform.bus.nc.publish(marker, b"")
    await until(lambda: wire.find(on(marker)), within=60, why="everything said is heard")


async def head_of(platform: FaultPlatform, job_id: str) -> Head:
    head = await JobLog(platform.bus, TENANT, job_id).last()
    assert head is not None
    return head


async def until_parked(platform: FaultPlatform, job_id: str) -> Head:
    async def parked() -> bool:
        head = await JobLog(platform.bus, TENANT, job_id).last()
        return head is not None and head.state is State.PARKED

    await until(parked, within=60, why=f"{job_id} is parked")
    return await head_of(platform, job_id)


async def types(platform: FaultPlatform, job_id: str) -> list[str]:
    return [event.type for message in await platform.records(job_id) for event in read_record(message.data)]


def append_elsewhere(head: Head, job_id: str, kind: type[e.Event], **payload: Any) -> e.Event:
    """An event that another process would write after this head."""
    trace = e.SpanRef(trace_id="0" * 31 + "1", span_id="0" * 15 + "1")
    return kind(job_id=job_id, seq=head.seq + 1, at=datetime.now(UTC), trace=trace, **payload)
