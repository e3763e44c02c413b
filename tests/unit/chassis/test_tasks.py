"""Waiting for tasks."""

from __future__ import annotations

import asyncio

import pytest

from wayline.chassis.concurrency.awaited_tasks import ended_within


async def test_a_task_that_ends_in_time_is_known_to_have_ended():
    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError

    task = asyncio.create_task(fails())

    assert await ended_within(task, 60)
    assert isinstance(task.exception(), ValueError)
    assert await ended_within(task, 60)


async def test_a_task_that_takes_longer_goes_on():
    go_on = asyncio.Event()
    task = asyncio.create_task(go_on.wait())

    assert not await ended_within(task, 0.001)

    go_on.set()
    assert await task


async def test_a_task_goes_on_when_its_waiter_is_cancelled():
    go_on = asyncio.Event()
    task = asyncio.create_task(go_on.wait())
    waiting = asyncio.create_task(ended_within(task, 60))
    await asyncio.sleep(0)
    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting

    go_on.set()
    assert await task
