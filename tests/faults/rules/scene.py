"""Services in this process, and the jobs that they hold."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from wayline.chassis import BusSettings, Service
from wayline.contracts import events as e
from wayline.executor.run_tickets import Lane
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.journal import Head, JobLog, State, read_record
from wayline.testkit import until
from wayline.tool_registry.settings import Settings as RegistrySettings

from ..conftest import LEASE_S
from ..world import TENANT, World
from .wire import Wire, on

ALL = ("router", "tool_registry", "executor")


@asynccontextmanager
async def running(world: World, *names: str) -> AsyncIterator[dict[str, Service]]:
    """Services in this process."""
    settings = {
        "executor": ExecutorSettings(chat_base_url=world.chat.url, tool_wait_s=2),
        "tool_registry": RegistrySettings.model_validate(
            {"servers": [world.effects.settings()], "lease_s": LEASE_S, "answer_within_s": 0.5}
        ),
    }
    services: dict[str, Service] = {}
    try:
        for name in names:
            dsn = world.fleet.env[name].get("WAYLINE_POSTGRES_DSN")
            seed = world.fleet.seeds[name]
            shared = BusSettings(
                nats_url=world.nats.url, nats_seed=seed, nats_accounts=True, postgres_dsn=dsn, drain_grace_s=5
            )
            build = import_module(f"wayline.{name}.app").build
            services[name] = await build(settings.get(name), bus_settings=shared)
            await services[name].start()
        yield services
    finally:
        for service in services.values():
            await service.stop(0.1)


async def until_held(world: World, name: str) -> None:
    await until(lambda: name in world.holds, within=60, why=f"the model call {name} is under way")


async def until_let_go(world: World, executor: Service, wire: Wire) -> None:
    """Wait until an executor has nothing in hand, and all that it said is heard."""
    lane = executor.parts[0]
    assert isinstance(lane, Lane)
    await until(lambda: not lane._held and not lane._puller.running, within=60, why="the holder has let go")
    # The server has got all that it said: what is published now is heard after it.
    await executor.bus.nc.flush()
    marker = f"marker.{len(wire.heard)}"
    await world.bus.nc.publish(marker, b"")
    await until(lambda: wire.find(on(marker)), within=60, why="everything said is heard")


async def head_of(world: World, job_id: str) -> Head:
    head = await JobLog(world.bus, TENANT, job_id).last()
    assert head is not None
    return head


async def until_parked(world: World, job_id: str) -> Head:
    async def parked() -> bool:
        head = await JobLog(world.bus, TENANT, job_id).last()
        return head is not None and head.state is State.PARKED

    await until(parked, within=60, why=f"{job_id} is parked")
    return await head_of(world, job_id)


async def types(world: World, job_id: str) -> list[str]:
    return [event.type for message in await world.records(job_id) for event in read_record(message.data)]


def append_elsewhere(head: Head, job_id: str, kind: type[e.Event], **payload: Any) -> e.Event:
    """An event that another process would write after this head."""
    trace = e.SpanRef(trace_id="0" * 31 + "1", span_id="0" * 15 + "1")
    return kind(job_id=job_id, seq=head.seq + 1, at=datetime.now(UTC), trace=trace, **payload)
