"""Slots of requests, shared between tenants."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from wayline.chassis.handling.request_turns import RequestTurns


@pytest.mark.parametrize(("slots", "share"), [(1, 1), (3, 3), (4, 3), (16, 12)])
async def test_one_tenant_holds_no_more_than_its_share(slots, share):
    turns = RequestTurns(slots, held_max_bytes=1_000)
    async with AsyncExitStack() as stack:
        for _ in range(share):
            await stack.enter_async_context(turns.turn("a", 1))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(stack.enter_async_context(turns.turn("a", 1)), 0.01)
        for _ in range(slots - share):
            await stack.enter_async_context(turns.turn("b", 1))

    async with turns.turn("a", 1):
        pass


async def test_bytes_that_wait_are_shared_out():
    turns = RequestTurns(4, held_max_bytes=100)
    async with turns.turn("a", 70):
        assert not turns.has_room("a", 10)
        assert turns.has_room("b", 10)
        assert not turns.has_room("b", 40)
    assert turns.has_room("a", 100)
