"""Turns at what takes much memory: a few at once, fewer of a tenant, and no endless queue."""

from __future__ import annotations

import asyncio

import pytest

from wayline.contracts.errors import Full
from wayline.gateway.bounded_turns import BoundedTurns


async def test_one_tenant_leaves_turns_to_others_and_queues_few():
    turns = BoundedTurns("the reading", at_once=2, at_once_per_tenant=1, waiting_per_tenant=2)
    begun, release = list[str](), asyncio.Event()

    async def hold(tenant: str) -> None:
        async with turns.turn(tenant):
            begun.append(tenant)
            await release.wait()

    async with asyncio.TaskGroup() as tasks:
        for tenant in ("acme", "acme", "acme", "globex", "umbrella"):
            tasks.create_task(hold(tenant))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert begun == ["acme", "globex"]
        with pytest.raises(Full):
            await hold("acme")
        release.set()

    assert sorted(begun) == ["acme"] * 3 + ["globex", "umbrella"]
    await hold("acme")


async def test_a_cancelled_request_leaves_the_queue():
    turns = BoundedTurns("the reading", at_once=1, at_once_per_tenant=1, waiting_per_tenant=1)
    async with turns.turn("acme"):
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0), turns.turn("acme"):
                    pass
