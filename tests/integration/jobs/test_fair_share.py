"""A tenant with a long queue beside one with a single job: the single one is begun next, counted in slots."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from wayline.chassis.topology import RUN_INTERACTIVE
from wayline.contracts.tenants import CreateTenant, Tenant
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform, until

SLOTS = 4
QUEUED = 200
AT_ONCE = 50
SINGLE = ("acme", "umbrella", "globex", "initech")
"""Tenants that submit one job each."""


@dataclass
class Calls:
    """Model calls that the test ends one by one."""

    held: dict[str, list[asyncio.Event]] = field(default_factory=lambda: defaultdict(list))
    """By what the job says: its tenant."""
    over: bool = False

    def answer(self, body: dict[str, Any]) -> Say:
        hold = asyncio.Event()
        if self.over:
            hold.set()
        asked = str(body["messages"][-1])
        tenant = next((name for name in SINGLE if name in asked), "default")
        self.held[tenant].append(hold)
        return Say(text="done at last", hold=hold)

    def end_one(self, tenant: str) -> None:
        self.held[tenant].pop(0).set()

    def end_all(self) -> None:
        self.over = True
        for tenant in self.held:
            while self.held[tenant]:
                self.end_one(tenant)

    async def until_held(self, tenant: str, count: int = 1) -> None:
        await until(lambda: len(self.held[tenant]) >= count, why=f"{tenant} has {count} slots")


@asynccontextmanager
async def provider(calls: Calls) -> AsyncIterator[ChatServer]:
    """Serve models whose calls the test ends; at its end, end all."""
    async with ChatServer(calls.answer) as chat:
        try:
            yield chat
        finally:
            calls.end_all()


async def queue(platform: Platform, count: int = QUEUED) -> None:
    """Start the router, and submit many jobs of tenant `default`."""
    await platform.start("router", "tool_registry")
    for tenant in SINGLE:
        await platform.bus.ask(CreateTenant(tenant=tenant), Tenant)
    for first in range(0, count, AT_ONCE):
        await asyncio.gather(*(submit(platform, f"greedy-{n}") for n in range(first, first + AT_ONCE)))
        if first % QUEUED == QUEUED - AT_ONCE:
            # A tenant's submissions that the router has not seen are limited, too.
            await platform.wait_until_empty("SUBMIT")
    await platform.wait_until_empty("SUBMIT")


async def submit(platform: Platform, job_id: str, tenant: str = "default") -> None:
    body = {"agent": "assistant", "input": tenant, "job_id": job_id, "options": {"model": "chat/m"}}
    await platform.publish(body, tenant=tenant)


def executing(chat: ChatServer) -> ExecutorSettings:
    return ExecutorSettings(chat_base_url=chat.url, interactive_slots=SLOTS)


@pytest.mark.parametrize("queued", [QUEUED, pytest.param(10_000, marks=pytest.mark.slow)])
async def test_a_single_job_waits_for_at_most_one_slot(platform: Platform, queued: int):
    calls = Calls()
    async with provider(calls) as chat:
        await queue(platform, queued)
        await platform.start("executor", executor=executing(chat))
        await calls.until_held("default", SLOTS)

        for tenant in SINGLE[:2]:
            await submit(platform, "single", tenant)
            await platform.wait_until_empty("SUBMIT")
            calls.end_one("default")
            await calls.until_held(tenant)

        assert await platform.count("RUN") > queued - SLOTS


async def test_a_ticket_without_a_slot_waits_undelivered(platform: Platform):
    calls = Calls()
    async with provider(calls) as chat:
        await queue(platform, AT_ONCE)
        await platform.start("executor", executor=executing(chat))
        await calls.until_held("default", SLOTS)

        for tenant in SINGLE:
            await submit(platform, "single", tenant)
        await until(lambda: any(calls.held[tenant] for tenant in SINGLE), why="a single job began")
        await platform.wait_until_empty("SUBMIT")

        lane = await platform.bus.js.consumer_info("RUN", RUN_INTERACTIVE.name)
        assert lane.num_pending == len(SINGLE) - 1
        assert lane.num_redelivered == 0


async def test_a_lone_tenant_takes_every_slot_that_frees(platform: Platform):
    calls = Calls()
    async with provider(calls) as chat:
        await queue(platform, AT_ONCE)
        await platform.start("executor", executor=executing(chat))

        for _ in range(2 * SLOTS):
            await calls.until_held("default", SLOTS)
            calls.end_one("default")
        await calls.until_held("default", SLOTS)


async def test_a_killed_executors_jobs_do_not_delay_a_single_one(platform: Platform, tmp_path: Path):
    calls = Calls()
    async with provider(calls) as chat:
        await queue(platform)
        fleet = await platform.make_fleet(tmp_path)
        fleet.set("executor", WAYLINE_CHAT_BASE_URL=chat.url, WAYLINE_EXECUTOR_INTERACTIVE_SLOTS=str(SLOTS))
        await fleet.start("executor")
        await calls.until_held("default", SLOTS)
        killed = await fleet.start("executor")
        await calls.until_held("default", 2 * SLOTS)

        killed.kill()
        await submit(platform, "single", "acme")
        await platform.wait_until_empty("SUBMIT")
        # The oldest call is the other executor's.
        calls.end_one("default")
        await calls.until_held("acme")
