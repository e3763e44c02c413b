"""Slots for fetching pages: shares of tenants, politeness to hosts."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress

from wayline.tool_registry.web.pages.fetch_slots import FetchSlots, KeyedSlots

TURNS = 20
"""Of the event loop: more than any of these tasks needs."""


async def settle() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


class Fetches:
    """Fetches that end when they are told to."""

    def __init__(self, slots: FetchSlots) -> None:
        self.slots = slots
        self.running: Counter[tuple[str, str]] = Counter()
        self.end = asyncio.Event()
        self.tasks: list[asyncio.Task[None]] = []

    async def begin(self, tenant: str, host: str, times: int = 1) -> None:
        self.tasks += [asyncio.create_task(self._fetch(tenant, host)) for _ in range(times)]
        await settle()

    async def _fetch(self, tenant: str, host: str) -> None:
        async with self.slots.slot(tenant, host):
            self.running[tenant, host] += 1
            await self.end.wait()

    async def finish(self) -> None:
        self.end.set()
        await asyncio.gather(*self.tasks)


async def test_hanging_hosts_of_one_tenant_leave_others_their_slots():
    fetches = Fetches(FetchSlots(per_tenant=3, per_host=4, host_delay_s=0))

    for number in range(10):
        await fetches.begin("acme", f"tarpit-{number}.example")
    await fetches.begin("globex", "wiki.example")

    assert sum(count for (tenant, _), count in fetches.running.items() if tenant == "acme") == 3
    assert fetches.running["globex", "wiki.example"] == 1
    await fetches.finish()
    assert fetches.running.total() == 11


async def test_a_host_is_asked_by_few_and_half_by_one_tenant():
    fetches = Fetches(FetchSlots(per_tenant=100, per_host=4, host_delay_s=0))

    for tenant in ("acme", "globex", "initech"):
        await fetches.begin(tenant, "wiki.example", times=5)

    assert fetches.running == {("acme", "wiki.example"): 2, ("globex", "wiki.example"): 2}
    await fetches.finish()
    assert fetches.running.total() == 15


async def test_requests_to_one_host_keep_their_distance():
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    slots = FetchSlots(per_tenant=9, per_host=9, host_delay_s=2.0, clock=lambda: 100.0, sleep=sleep)
    for host in ("wiki.example", "wiki.example", "other.example", "wiki.example"):
        async with slots.slot("acme", host):
            pass

    assert waited == [2.0, 4.0]


async def test_a_cancelled_wait_loses_no_slot():
    slots = KeyedSlots(1, per_holder=1)
    entered: list[str] = []

    async def take(name: str, until: asyncio.Event) -> None:
        async with slots.slot("host", name):
            entered.append(name)
            await until.wait()

    first, never = asyncio.Event(), asyncio.Event()
    holding = asyncio.create_task(take("a", first))
    await settle()
    waiting = [asyncio.create_task(take(name, never)) for name in ("b", "c")]
    await settle()
    # One is cancelled while it waits, one in the moment in which it gets its turn.
    waiting[0].cancel()
    first.set()
    await holding
    waiting[1].cancel()
    for task in waiting:
        with suppress(asyncio.CancelledError):
            await task
    first.set()
    await asyncio.wait_for(take("d", first), 5)

    assert entered[0] == "a" and entered[-1] == "d"
    assert slots._keys == {}
