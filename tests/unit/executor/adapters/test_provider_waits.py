"""Jobs parked for a provider are queued once their model answers, each by its newest ticket."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from wayline.chassis.providers import subject
from wayline.contracts.jobs import RunJob
from wayline.executor.adapters import provider_waits
from wayline.executor.adapters.provider_waits import ProviderWaits

MODEL, OTHER = "chat/one", "chat/two"


class Published:
    """A bus that keeps what is published."""

    def __init__(self) -> None:
        self.tickets: list[RunJob] = []

    async def publish(self, ticket: RunJob, *, msg_id: str) -> None:
        self.tickets.append(ticket)


def ticket(job: str, at: int = 1) -> RunJob:
    return RunJob(tenant="acme", lane="batch", job=job, at=at)


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> Published:
    monkeypatch.setattr(provider_waits, "PAUSE_S", 0.0)
    return Published()


async def queued(waits: ProviderWaits, bus: Published) -> list[RunJob]:
    while waits._waking:  # noqa: ASYNC110 -- the task itself is the event
        await asyncio.sleep(0)
    return bus.tickets


async def test_jobs_of_a_model_are_queued_by_their_newest_tickets(bus: Any):
    waits = ProviderWaits(bus)
    for one in (ticket("j1"), ticket("j2"), ticket("j1", at=5)):
        waits.remember(MODEL, one)
    waits.remember(OTHER, ticket("j3"))

    assert waits.wake(subject(MODEL)) and not waits.wake(subject(MODEL))

    assert [(one.job, one.at) for one in await queued(waits, bus)] == [("j1", 5), ("j2", 1)]


async def test_no_more_jobs_are_remembered_than_may_be(bus: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(provider_waits, "REMEMBERED_MAX", 2)
    waits = ProviderWaits(bus)
    for one in (ticket("j1"), ticket("j2")):
        waits.remember(MODEL, one)
    waits.remember(OTHER, ticket("j3"))
    waits.remember(MODEL, ticket("j2", at=7))

    assert not waits.wake(subject(OTHER)) and waits.wake(subject(MODEL))

    assert [(one.job, one.at) for one in await queued(waits, bus)] == [("j1", 1), ("j2", 7)]


async def test_a_tenants_woken_jobs_wait_for_turns_but_for_one(bus: Any):
    waits = ProviderWaits(bus)
    for one in (ticket("j1"), ticket("j2"), ticket("j3"), ticket("o1").model_copy(update={"tenant": "other"})):
        waits.remember(MODEL, one)

    waits.wake(subject(MODEL))

    assert [(one.job, one.lane) for one in await queued(waits, bus)] == [
        ("j1", "batch"),
        ("j2", "batch_waiting"),
        ("j3", "batch_waiting"),
        ("o1", "batch"),
    ]
