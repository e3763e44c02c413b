"""A claim that outlasts the ticket's ack_wait: the ticket stays with its executor, and the model is paid once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from nats.aio.msg import Msg

from wayline.chassis.handling.heartbeat import Heartbeat
from wayline.chassis.topology import RUN_INTERACTIVE
from wayline.contracts import events as e
from wayline.executor.claim_jobs import JobClaims
from wayline.executor.run_tickets import Lane
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import until

from .conftest import ExecutorPlatform

ACK_WAIT_S = 1.0
BEATS = 5
"""More than fit into ACK_WAIT_S."""


@pytest.fixture
async def reading(platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Holds every claim until it is set, as a slow read of the log would, and shortens ack_wait."""
    read, claim = asyncio.Event(), JobClaims.claim

    async def slowly(self: JobClaims, *of: Any) -> Any:
        await read.wait()
        return await claim(self, *of)

    monkeypatch.setattr(JobClaims, "claim", slowly)
    consumer = (await platform.bus.js.consumer_info("RUN", RUN_INTERACTIVE.name)).config
    await platform.bus.js.add_consumer("RUN", consumer.evolve(ack_wait=ACK_WAIT_S))
    return read


async def redelivered(platform: ExecutorPlatform) -> int:
    return (await platform.bus.js.consumer_info("RUN", RUN_INTERACTIVE.name)).num_redelivered or 0


async def test_a_ticket_beats_while_its_jobs_log_is_read(
    platform: ExecutorPlatform, reading: asyncio.Event, monkeypatch: pytest.MonkeyPatch
):
    beats: list[str] = []
    asked: list[Any] = []
    in_progress = Msg.in_progress

    async def counted(self: Msg) -> None:
        beats.append(self.subject)
        await in_progress(self)

    monkeypatch.setattr(Msg, "in_progress", counted)
    async with ChatServer(lambda said: asked.append(said) or Say("done")) as chat:
        await platform.executor(chat)
        await platform.begin("j1")

        async def long_enough() -> bool:
            return len(beats) >= BEATS or await redelivered(platform) > 0

        await until(long_enough, why="the read has outlasted ack_wait")
        assert await redelivered(platform) == 0
        reading.set()
        await platform.wait_for("j1")

        assert len(asked) == 1
    assert len(await platform.events_of("j1", e.JobClaimed)) == 1


async def test_a_redelivery_is_adopted_while_its_job_is_claimed(
    platform: ExecutorPlatform, reading: asyncio.Event, monkeypatch: pytest.MonkeyPatch
):
    deliveries: list[Msg] = []
    on_ticket = Lane._on_ticket

    async def counted(self: Lane, message: Msg) -> None:
        deliveries.append(message)
        await on_ticket(self, message)

    monkeypatch.setattr(Lane, "_on_ticket", counted)
    monkeypatch.setattr(Heartbeat, "_beat", lambda self: None)
    asked: list[Any] = []
    async with ChatServer(lambda said: asked.append(said) or Say("done")) as chat:
        await platform.executor(chat)
        await platform.begin("j1")

        # With the third delivery the second has long been taken in.
        await until(lambda: len(deliveries) >= 3, why="the ticket was delivered again, and again")
        reading.set()
        await platform.wait_for("j1")
        await platform.wait_until_empty("RUN")

        assert len(asked) == 1
    assert len(await platform.events_of("j1", e.JobClaimed)) == 1
