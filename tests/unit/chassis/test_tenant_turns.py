"""Tenants take turns at the slots, and none holds more than its share of them."""

from __future__ import annotations

import asyncio

import pytest

from wayline.chassis.concurrency.tenant_turns import TenantTurns


class Users:
    """Tasks that hold slots until they are told to give them back."""

    def __init__(self, slots_max: int, per_tenant_max: int = 1) -> None:
        self.slots = TenantTurns(slots_max, per_tenant_max=per_tenant_max)
        self.holding: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def ask(self, *names: str) -> None:
        """Ask for a slot for each; a name's first letter is its tenant."""
        for name in names:
            self._ends[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._use(name))
        await settle()

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await settle()

    async def _use(self, name: str) -> None:
        async with self.slots.turn(name[0]):
            self.holding.append(name)
            try:
                await self._ends[name].wait()
            finally:
                self.holding.remove(name)


async def settle() -> None:
    """Let every task run as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_tenant_holds_one_slot_though_another_is_free():
    users = Users(2)
    await users.ask("a1", "a2", "b1")

    assert users.holding == ["a1", "b1"]
    await users.end("a1")
    assert users.holding == ["b1", "a2"]


async def test_a_tenant_holds_its_share_and_leaves_the_rest_to_others():
    users = Users(4, per_tenant_max=2)
    await users.ask("a1", "a2", "a3", "a4", "b1", "b2", "c1")

    assert users.holding == ["a1", "a2", "b1", "b2"]
    await users.end("a1")
    assert users.holding == ["a2", "b1", "b2", "c1"]
    await users.end("b1")
    assert users.holding == ["a2", "b2", "c1", "a3"]


async def test_a_tenant_that_had_a_slot_waits_behind_others():
    users = Users(2)
    await users.ask("a1", "a2", "a3", "b1", "c1", "d1")
    held = [users.holding.copy()]
    for name in ("a1", "b1", "c1", "d1", "a2"):
        await users.end(name)
        held.append(users.holding.copy())

    assert held == [["a1", "b1"], ["b1", "c1"], ["c1", "d1"], ["d1", "a2"], ["a2"], ["a3"]]


async def test_one_that_no_longer_waits_leaves_its_turn():
    users = Users(1)
    await users.ask("a1", "b1", "b2", "c1")
    users.tasks["b1"].cancel()
    # The slot comes back before the cancelled task runs.
    await users.end("a1")

    assert users.holding == ["b2"]
    await users.end("b2")
    assert users.holding == ["c1"]


async def test_a_turn_that_is_given_to_a_cancelled_task_goes_on():
    slots = TenantTurns(1)
    held = asyncio.Event()

    async def hold(tenant: str) -> None:
        async with slots.turn(tenant):
            held.set()

    async with slots.turn("a"):
        cancelled, other = asyncio.create_task(hold("b")), asyncio.create_task(hold("c"))
        await settle()
    cancelled.cancel()
    await other

    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert held.is_set()


async def test_slots_are_free_again_after_all_were_used():
    users = Users(2)
    names = [f"{tenant}{n}" for n in range(3) for tenant in "abc"]
    await users.ask(*names)
    for _ in names:
        await users.end(users.holding[0])
    await users.ask("d1", "e1")

    assert users.holding == ["d1", "e1"]
