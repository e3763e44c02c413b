"""While an installation has no webhook its records are passed over; whoever asks for the first one misses nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio

from wayline.chassis import Service
from wayline.contracts.webhooks import DeleteWebhook, WebhookDeleted
from wayline.notifier.events.record_reader import RecordReader
from wayline.notifier.settings import Settings
from wayline.simulator.website import Website
from wayline.testkit import Platform, until

from .conftest import QUICK, Clock, Hooks


@pytest_asyncio.fixture
async def idle(platform: Platform) -> AsyncIterator[Hooks]:
    """Share a platform without a webhook, on which no notifier runs yet."""
    async with Website() as website:
        yield Hooks(platform, website, Clock())


async def build(hooks: Hooks, **settings: object) -> Service:
    notifier = Settings.model_validate(QUICK | settings)
    return await hooks.platform.build("notifier", notifier, clock=hooks.clock)


async def start(hooks: Hooks, service: Service) -> None:
    hooks.platform.running.append(service)
    await service.start()


async def records_of(hooks: Hooks) -> Any:
    """Return what the server knows of the consumer of records; since it was moved, `consumer_seq` were delivered."""
    return await hooks.platform.bus.js.consumer_info("EVENTS", "notifier")


async def passed_over(hooks: Hooks) -> bool:
    info = await records_of(hooks)
    return info.num_pending == 0 and info.delivered.consumer_seq == 0


async def test_no_record_is_read_while_there_is_no_webhook(idle: Hooks):
    await start(idle, await build(idle, upkeep_every_s=0.05))
    await idle.complete("acme", "unread")
    await until(lambda: passed_over(idle), why="the record is passed over")
    receiver = idle.receiver()
    await idle.put("acme", receiver)

    await idle.complete("acme", "told")

    [request] = await receiver.until_sent(1)
    assert b'"told"' in request.body
    # The last one gone, nobody wants records again.
    await idle.platform.bus.ask(DeleteWebhook(tenant="acme", name="crm"), WebhookDeleted)

    async def moved() -> bool:
        await idle.complete("acme", f"later-{next(idle.numbers)}")
        return (await records_of(idle)).delivered.consumer_seq == 0

    await until(moved, why="later records are passed over too")


async def test_no_job_that_names_a_webhook_is_passed_over(idle: Hooks):
    receiver, service = idle.receiver(), await build(idle)
    [reader] = [part for part in service.parts if isinstance(part, RecordReader)]
    await idle.complete("acme", "j1", webhook={"url": receiver.url})
    # Its notice waits: no notifier runs yet that could have taken it.
    for _ in range(3):
        await reader.pass_over()
    await start(idle, service)

    [request] = await receiver.until_sent(1)

    assert b'"j1"' in request.body
