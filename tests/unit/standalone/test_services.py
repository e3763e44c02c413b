"""Several services in one process: who they are, and how they end together."""

from __future__ import annotations

import asyncio
import json
import logging
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest
import structlog

from wayline.chassis import BusSettings
from wayline.chassis.access.permissions import IDENTITIES
from wayline.standalone.launch import log_config
from wayline.standalone.launch.serve import bus_settings
from wayline.standalone.launch.stopping import Stopped, Stopping
from wayline.standalone.services import MEMBERS, Member, ServiceGroup, members
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import Installation


class Slow:
    """A service that takes its time, unless it is given none."""

    def __init__(self, name: str, ended: list[str], *, takes: asyncio.Event | None = None) -> None:
        self.name, self._ended, self._takes = name, ended, takes

    async def start(self) -> None: ...

    async def stop(self, grace_s: float | None = None) -> None:
        if self._takes is not None and grace_s != 0:
            await self._takes.wait()
        self._ended.append(self.name)


def group_of(**services: Slow) -> ServiceGroup:
    crew = members(services)
    group = ServiceGroup(crew, lambda _: BusSettings())
    group._running = cast("Any", {member: services[member.identity] for member in crew})
    return group


async def test_who_asks_ends_before_who_answers_and_the_listener_last():
    ended: list[str] = []
    group = group_of(**{name: Slow(name, ended) for name in ("tracing", "router", "executor")})

    await Stopping().drain(group)

    assert ended == ["executor", "router", "tracing"]


async def test_a_second_signal_ends_what_the_first_left_in_hand():
    ended: list[str] = []
    group = group_of(executor=Slow("executor", ended, takes=asyncio.Event()), router=Slow("router", ended))
    stopping = Stopping()
    stopping.asked.set()

    draining = asyncio.create_task(stopping.drain(group))
    await asyncio.sleep(0)
    stopping._on_signal()
    await asyncio.wait_for(draining, 30)

    assert ended == ["executor", "router"]


async def test_one_that_cannot_end_keeps_no_other_from_it():
    ended: list[str] = []

    class Broken(Slow):
        async def stop(self, grace_s: float | None = None) -> None:
            raise ConnectionError("the bus is gone")

    await group_of(executor=Broken("executor", ended), router=Slow("router", ended)).stop()

    assert ended == ["router"]


async def test_a_signal_ends_a_start_that_is_under_way():
    stopping = Stopping()
    cancelled = asyncio.Event()

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    asyncio.get_running_loop().call_soon(stopping._on_signal)
    with pytest.raises(Stopped):
        await stopping.or_stop(forever())

    assert cancelled.is_set()


def test_every_service_is_an_identity_of_the_bus():
    assert {member.identity for member in MEMBERS} == set(IDENTITIES)


@pytest.mark.parametrize("member", [member for member in MEMBERS if member.schema], ids=lambda member: member.name)
def test_migrations_are_found_where_the_service_keeps_them(member: Member):
    app = import_module(f"wayline.{member.identity}.app")

    assert member.migrations() == app.migrations()


def test_a_process_uses_ups_credentials_unless_its_environment_overrides_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("WAYLINE_NATS_URL", "WAYLINE_NATS_SEED", "WAYLINE_POSTGRES_DSN"):
        monkeypatch.delenv(name, raising=False)
    installation, [router] = Installation(tmp_path), members(["router"])
    installation.prepare()
    seed = installation.load_credentials().seeds["router"]
    (installation.credentials / "router.env").write_text(
        f"WAYLINE_NATS_URL=nats://kept:1\nWAYLINE_NATS_SEED={seed}\nWAYLINE_POSTGRES_DSN=postgresql://kept\n"
    )

    kept = bus_settings(installation, router)
    assert (kept.nats_url, kept.nats_seed, kept.postgres_dsn) == ("nats://kept:1", seed, "postgresql://kept")

    # A seed belongs to its bus: it is not shown to another one.
    monkeypatch.setenv("WAYLINE_NATS_URL", "nats://other:2")
    other = bus_settings(installation, router)
    assert (other.nats_url, other.nats_seed, other.postgres_dsn) == ("nats://other:2", None, "postgresql://kept")


def test_log_lines_are_json_where_asked_and_of_the_level_asked(tmp_path: Path):
    before = logging.getLogger().handlers[:]
    try:
        log_config.configure(Settings(log="json", log_level="warning"), file=tmp_path / "log")
        structlog.get_logger().info("too quiet")
        structlog.get_logger().warning("heard", job="j1")
        logging.getLogger("somebody").error("also heard")
        lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    finally:
        logging.getLogger().handlers[:] = before
        structlog.reset_defaults()

    assert [(line["event"], line["level"], line.get("job")) for line in lines] == [
        ("heard", "warning", "j1"),
        ("also heard", "error", None),
    ]
