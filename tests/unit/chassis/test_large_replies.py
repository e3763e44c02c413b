"""Large replies: what one tenant may take of the store for them, and of a process's memory on the way there."""

import asyncio
from typing import Any

import pytest

from wayline.chassis.claim_check.large_replies import (
    MOVING_MAX_BYTES,
    MOVING_SHARE,
    LargeReplies,
    TooManyAtOnce,
    TooManyLargeReplies,
)
from wayline.contracts.errors import Unavailable

MIB = 1024 * 1024
STORE_BYTES = 256 * MIB
REPLY = bytes(4 * MIB)


class Store:
    """A store of replies, which all processes share."""

    def __init__(self) -> None:
        self.bytes = 0

    async def fill(self) -> float:
        return self.bytes / STORE_BYTES

    async def check_in(self, body: bytes, _: str) -> tuple[bytes, bool]:
        self.bytes += len(body)
        return b"{}", True


class SilentStore:
    """Takes no reply until it is let go."""

    def __init__(self) -> None:
        self.moving, self.go = 0, asyncio.Event()

    async def fill(self) -> None:
        return None

    async def check_in(self, body: bytes, _: str) -> tuple[bytes, bool]:
        self.moving += len(body)
        await self.go.wait()
        return b"{}", True


def process(store: Any, *, most: int = 32 * MIB) -> LargeReplies:
    return LargeReplies(store, per_tenant_max_bytes=most, read_fill=store.fill)


@pytest.mark.parametrize("processes", [1, 8, 20])
async def test_a_tenant_leaves_room_through_however_many_processes(processes: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("wayline.chassis.claim_check.large_replies.FILL_FRESH_S", 0)
    store = Store()
    group = [process(store) for _ in range(processes)]

    for _ in range(10):
        for one in group:
            try:
                await one.check_in(REPLY, "greedy")
            except TooManyLargeReplies:
                continue

    assert store.bytes < 0.8 * STORE_BYTES
    assert await group[0].check_in(REPLY, "other") == b"{}"


async def test_replies_that_a_silent_store_does_not_take_are_bounded():
    store = SilentStore()
    replies = process(store, most=10**12)
    asked = [asyncio.ensure_future(replies.check_in(REPLY, f"t{number % 2}")) for number in range(50)]
    refused, waiting = await asyncio.wait(asked, return_when=asyncio.FIRST_EXCEPTION)

    assert store.moving <= MOVING_MAX_BYTES
    assert all(isinstance(one.exception(), TooManyAtOnce) for one in refused)
    assert len(refused) + len(waiting) == 50

    store.go.set()
    await asyncio.gather(*waiting)
    assert await replies.check_in(REPLY, "t0") == b"{}"


async def test_one_tenant_has_no_more_than_its_share_on_the_way():
    store = SilentStore()
    replies = process(store, most=10**12)
    asked = [asyncio.ensure_future(replies.check_in(REPLY, "greedy")) for _ in range(50)]
    await asyncio.wait(asked, return_when=asyncio.FIRST_EXCEPTION)
    assert store.moving <= MOVING_MAX_BYTES * MOVING_SHARE

    other = asyncio.ensure_future(replies.check_in(REPLY, "other"))
    store.go.set()

    assert await other == b"{}"
    await asyncio.gather(*asked, return_exceptions=True)


async def test_what_no_store_took_counts_against_no_share():
    class BrokenStore(Store):
        broken = True

        async def check_in(self, body: bytes, owner: str) -> tuple[bytes, bool]:
            if self.broken:
                raise Unavailable("the object store")
            return await super().check_in(body, owner)

    store = BrokenStore()
    replies = process(store, most=2 * len(REPLY))
    for _ in range(5):
        with pytest.raises(Unavailable):
            await replies.check_in(REPLY, "t")

    store.broken = False
    assert await replies.check_in(REPLY, "t") == b"{}"
    assert await replies.check_in(REPLY, "t") == b"{}"
