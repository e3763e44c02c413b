"""Whether a tenant may have more facts, and which saves wait for the count."""

from __future__ import annotations

import asyncio
from typing import cast

from wayline.retrieval.memory.fact_quota import COUNTED_EVERY_S, FactQuota
from wayline.retrieval.memory.fact_table import FactTable
from wayline.retrieval.memory.memory_errors import MemoriesFull


class Facts:
    """Facts that are counted when a test lets them be."""

    def __init__(self) -> None:
        self.has_room_now = True
        self.counts = 0
        self.countable = asyncio.Event()
        self.countable.set()

    async def has_room(self, *_: object) -> bool:
        self.counts += 1
        await self.countable.wait()
        return self.has_room_now


class Tenant:
    """A tenant with a quota, and a clock that stands."""

    def __init__(self) -> None:
        self.facts = Facts()
        self.now = 0.0
        self.quota = FactQuota(cast(FactTable, self.facts), 10, clock=lambda: self.now)

    async def may_save(self) -> bool:
        try:
            async with asyncio.timeout(1):
                await self.quota.check("acme")
        except MemoriesFull:
            return False
        return True


async def test_a_save_beside_a_count_is_not_delayed():
    acme = Tenant()
    await acme.may_save()
    acme.now = COUNTED_EVERY_S + 1
    acme.facts.countable.clear()

    assert [await acme.may_save(), await acme.may_save()] == [True, True]
    acme.facts.countable.set()
    await asyncio.sleep(0)
    assert acme.facts.counts == 2


async def test_a_tenant_that_was_found_full_is_refused():
    acme = Tenant()
    await acme.may_save()
    acme.facts.has_room_now, acme.now = False, COUNTED_EVERY_S + 1
    await acme.may_save()
    await asyncio.sleep(0)

    assert not await acme.may_save()


async def test_a_full_tenant_is_refused_until_it_has_room():
    acme = Tenant()
    acme.facts.has_room_now = False
    refused = [await acme.may_save(), await acme.may_save()]
    acme.facts.has_room_now = True

    assert [*refused, await acme.may_save()] == [False, False, True]
