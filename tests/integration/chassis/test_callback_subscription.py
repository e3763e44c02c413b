"""Messages handed over as they are read: in order, whatever their handler does, and none left when the bus closes."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from nats.aio.msg import Msg

from wayline.chassis import Bus, BusSettings
from wayline.chassis.nats_client import callback_subscription
from wayline.testkit import until


@pytest.fixture
async def server(nats_factory):
    return await nats_factory()


@pytest.fixture
async def bus(server) -> AsyncIterator[Bus]:
    bus = await Bus.connect(BusSettings(nats_url=server.url), service="test", exit_when_closed=False)
    yield bus
    await bus.close()


async def test_messages_come_in_order_and_a_failing_one_stops_nothing(bus: Bus):
    heard: list[bytes] = []

    def handle(message: Msg) -> None:
        if message.data == b"2":
            raise ValueError("not this one")
        heard.append(message.data)

    await callback_subscription.subscribe(bus.nc, "callback_subscription.test", handle)
    for number in range(5):
        await bus.nc.publish("callback_subscription.test", str(number).encode())

    await until(lambda: len(heard) == 4, why="four of five were handled")
    assert heard == [b"0", b"1", b"3", b"4"]


async def test_more_than_any_queue_would_hold_is_heard(bus: Bus):
    size, burst, bursts, heard = 100_000, 100, 15, []
    await callback_subscription.subscribe(
        bus.nc, "callback_subscription.much", lambda message: heard.append(len(message.data))
    )

    for sent in range(burst, burst * bursts + 1, burst):
        for _ in range(burst):
            await bus.nc.publish("callback_subscription.much", b"x" * size)
        # The server cuts off whoever leaves 64 MiB unread, as a busy machine might.
        await until(lambda sent=sent: len(heard) == sent, within=60, why="all of this burst was heard")

    assert sum(heard) == size * burst * bursts


async def test_nothing_is_heard_after_the_end_of_a_subscription(bus: Bus):
    heard: list[bytes] = []
    subscription = await callback_subscription.subscribe(
        bus.nc, "callback_subscription.end", lambda message: heard.append(message.data)
    )
    await bus.nc.publish("callback_subscription.end", b"before")
    await until(lambda: heard, why="the first is heard")
    await subscription.drain()

    await bus.nc.publish("callback_subscription.end", b"after")
    await bus.settled()

    assert heard == [b"before"]


async def test_a_subscription_survives_a_killed_and_restarted_server(bus: Bus, server):
    heard: list[bytes] = []
    await callback_subscription.subscribe(
        bus.nc, "callback_subscription.again", lambda message: heard.append(message.data)
    )
    await bus.settled()
    back = asyncio.Event()
    bus.reconnected.append(back.set)
    await server.kill()
    await server.start()
    await asyncio.wait_for(back.wait(), 15)

    await bus.nc.publish("callback_subscription.again", b"after")

    await until(lambda: heard == [b"after"], why="it is heard on the new connection")


@pytest.mark.parametrize("rounds", [1, 5])
async def test_a_round_trip_given_up_leaves_the_connection_reading(rounds: int, bus: Bus):
    heard: list[bytes] = []

    for _ in range(rounds):
        waiting = asyncio.create_task(bus.settled())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
    await callback_subscription.subscribe(
        bus.nc, "callback_subscription.after", lambda message: heard.append(message.data)
    )
    await bus.settled()
    await bus.nc.publish("callback_subscription.after", b"still here")

    await until(lambda: heard == [b"still here"], why="the connection still reads")
