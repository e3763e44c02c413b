"""Tenants that wait in one lane: their jobs begin by their weights, counted by model calls."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from wayline.chassis import Failpoint
from wayline.contracts import headers as h
from wayline.contracts.tenants import CreateTenant, SetTenantWeight, Tenant
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.journal import leader_next
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform, until

SLOTS = 4
WEIGHTS = {"light": 1, "middle": 2, "heavy": 5}
EACH = 120
OFF_MOST = 2 * SLOTS
"""What executors take before a router has looked is made up for afterwards."""


class Begun:
    """Which tenant's job began when, by the calls that a model got."""

    def __init__(self) -> None:
        self.order: list[str] = []

    def answer(self, body: dict[str, Any]) -> Say:
        asked = str(body["messages"][-1])
        self.order.append(next(tenant for tenant in WEIGHTS if tenant in asked))
        return Say(text="done")

    async def shares(self, count: int, *, after: int = 0) -> Counter[str]:
        """Count whose jobs began, after so many others."""
        await until(lambda: len(self.order) >= after + count, within=60, why=f"{after + count} jobs began")
        return Counter(self.order[after : after + count])


@asynccontextmanager
async def executing(platform: Platform) -> AsyncIterator[Begun]:
    """Run an executor for what is queued by now."""
    begun = Begun()
    async with ChatServer(begun.answer) as chat:
        await platform.start("executor", executor=ExecutorSettings(chat_base_url=chat.url, interactive_slots=SLOTS))
        yield begun


async def set_weight(platform: Platform, tenant: str, weight: int) -> None:
    await platform.bus.ask(SetTenantWeight(tenant=tenant, weight=weight), Tenant)


async def queue(platform: Platform, *tenants: str, count: int = EACH) -> None:
    """Submit many jobs of each tenant, one tenant after another."""
    for tenant in tenants:
        await platform.bus.ask(CreateTenant(tenant=tenant), Tenant)
        await set_weight(platform, tenant, WEIGHTS[tenant])
    for tenant in tenants:
        await asyncio.gather(*(submit(platform, tenant, n) for n in range(count)))
        await platform.wait_until_empty("SUBMIT")


async def submit(platform: Platform, tenant: str, n: int) -> None:
    body = {"agent": "assistant", "input": tenant, "job_id": f"{tenant}-{n}", "options": {"model": "chat/m"}}
    await platform.publish(body, tenant=tenant)


def off(shares: Counter[str], weights: dict[str, int]) -> dict[str, float]:
    """Return by how much each tenant's jobs are off their share."""
    together = sum(weights.values())
    return {name: shares[name] - shares.total() * weight / together for name, weight in weights.items()}


async def test_jobs_begin_in_proportion_to_weights_also_by_two_routers(platform: Platform):
    await platform.start("tool_registry", "router", "router")
    await queue(platform, *WEIGHTS)
    async with executing(platform) as begun:
        shares = await begun.shares(104)
        await set_weight(platform, "middle", 8)
        changed_at = len(begun.order)
        later = await begun.shares(70, after=changed_at + SLOTS)

    story = "".join(tenant[0] for tenant in begun.order)
    assert all(abs(by) <= OFF_MOST for by in off(shares, WEIGHTS).values()), (off(shares, WEIGHTS), story)
    changed = {**WEIGHTS, "middle": 8}
    assert all(abs(by) <= OFF_MOST for by in off(later, changed).values()), (off(later, changed), story)


async def test_tickets_of_a_lone_tenant_are_not_moved(platform: Platform):
    await platform.start("tool_registry", "router")
    await queue(platform, "heavy", count=20)

    state = (await platform.bus.js.stream_info("RUN", subjects_filter=">")).state
    assert state.subjects == {"jobs.run.interactive.heavy": 1, "jobs.run.interactive_backlog.heavy": 19}
    assert state.last_seq == 20, "no ticket was published twice"


async def leave_waiting(platform: Platform, tenant: str) -> None:
    """Have the tickets of a tenant's backlog wait for turns instead, like those of jobs that an executor wakes."""
    last, subject = (await platform.bus.js.stream_info("RUN")).state.last_seq, f"jobs.run.interactive_backlog.{tenant}"
    # Not beyond: those are tickets that the router has moved back meanwhile.
    while (ticket := await leader_next(platform.bus, "RUN", subject, start=1)) and ticket.sequence <= last:
        headers = {h.TENANT: tenant, h.MSG_ID: f"{ticket.sequence}:waits"}
        await platform.bus.store(f"jobs.run.interactive_waiting.{tenant}", ticket.body, headers)
        await platform.bus.js.delete_msg("RUN", ticket.sequence)


async def test_who_comes_after_a_lone_tenants_woken_jobs_has_its_share(platform: Platform):
    await platform.start("tool_registry", "router")
    await queue(platform, "heavy", count=80)
    await leave_waiting(platform, "heavy")
    await until(lambda: waits_nobody(platform), why="the lone tenant's tickets are in the backlog")
    await queue(platform, "middle", count=40)
    async with executing(platform) as begun:
        shares = await begun.shares(56)

    two = {tenant: WEIGHTS[tenant] for tenant in ("heavy", "middle")}
    assert all(abs(by) <= OFF_MOST for by in off(shares, two).values()), "".join(one[0] for one in begun.order)


async def test_tickets_that_wait_in_a_full_stream_have_their_turn(platform: Platform):
    await platform.start("tool_registry", "router")
    await queue(platform, "light", "heavy", count=12)
    stream = await platform.bus.js.stream_info("RUN")
    await platform.bus.js.update_stream(stream.config.evolve(max_msgs=stream.state.messages))
    assert not await waits_nobody(platform)
    async with executing(platform) as begun:
        await platform.wait_until_empty("RUN")

    assert Counter(begun.order) == {"light": 12, "heavy": 12}


async def waits_nobody(platform: Platform) -> bool:
    return not (await platform.bus.js.consumer_info("RUN", "interactive_waiting")).num_pending


@pytest.mark.parametrize("point", [Failpoint.ROUTER_FEED_BEFORE, Failpoint.ROUTER_FEED_AFTER])
async def test_a_router_killed_as_it_gives_turns_loses_no_job(platform: Platform, tmp_path: Path, point: Failpoint):
    fleet = await platform.make_fleet(tmp_path, "router")
    await platform.start("tool_registry")
    killed = await fleet.start("router", point, nth=3)
    await queue(platform, "light", "heavy", count=12)
    async with executing(platform) as begun:
        await until(lambda: killed.exited, why="the router was killed as it gave a turn")
        await fleet.start("router")
        await platform.wait_until_empty("RUN")

        assert Counter(begun.order) == {"light": 12, "heavy": 12}
