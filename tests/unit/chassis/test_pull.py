"""Which consumer is asked for the next message, where one has precedence over the other and both share the slots."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
import pytest_asyncio

from wayline.chassis.handling import pull
from wayline.chassis.handling.pull import Puller
from wayline.chassis.nats_client import callback_subscription
from wayline.chassis.topology import RUN_BACKLOGS, RUN_INTERACTIVE
from wayline.contracts import headers as h
from wayline.testkit import until

LANE, BACKLOG = RUN_INTERACTIVE.name, RUN_BACKLOGS[RUN_INTERACTIVE].name
SLOTS = 8
ADDED = SLOTS // pull.ADDED_PER


class Server:
    """Knows for how many messages of each consumer it was asked, and delivers them when the test says so."""

    def __init__(self) -> None:
        self.asked = Counter[str]()
        self.inboxes: dict[str, str] = {}
        self.callbacks: dict[str, Callable[[Any], None]] = {}
        self.given_back = 0
        self.api, self.service, self.reconnected, self.nc = "$JS.API", "test", list[Any](), self

    def new_inbox(self) -> str:
        return f"inbox-{len(self.callbacks)}"

    async def publish(self, subject: str, body: bytes, *, reply: str) -> None:
        consumer = subject.rpartition(".")[2]
        self.asked[consumer] += orjson.loads(body)["batch"]
        self.inboxes[consumer] = reply

    async def deliver(self, consumer: str, count: int = 1, *, left: int = 0, turn: bool = False) -> None:
        """Deliver messages that were asked for; `left`: how many more the consumer has."""
        for _ in range(count):
            assert self.asked[consumer], f"{consumer} was not asked for one more: {self.asked}"
            self.asked[consumer] -= 1
            reply = f"$JS.ACK.RUN.{consumer}.1.1.1.0.{left}"
            message = SimpleNamespace(headers={h.TURN: "1"} if turn else None, reply=reply, nak=self.nak)
            self.callbacks[self.inboxes[consumer]](message)
            await self.settled()

    async def nak(self, delay: float | None = None) -> None:
        self.given_back += 1

    async def settled(self) -> None:
        """Let the requests go out that were begun."""
        for _ in range(3):
            await asyncio.sleep(0)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    server = Server()

    async def subscribe(_: object, inbox: str, callback: Callable[[Any], None]) -> str:
        server.callbacks[inbox] = callback
        return inbox

    async def leave(*_: object) -> None:
        pass

    monkeypatch.setattr(callback_subscription, "subscribe", subscribe)
    monkeypatch.setattr(callback_subscription, "leave", leave)
    return server


@pytest_asyncio.fixture
async def ends() -> list[asyncio.Event]:
    """Return the events that end the handlers, in the order in which they began."""
    return []


@pytest_asyncio.fixture
async def puller(server: Server, ends: list[asyncio.Event]) -> AsyncIterator[Puller]:
    async def handle(_: object) -> None:
        ends.append(asyncio.Event())
        await ends[-1].wait()

    bus: Any = server
    puller = Puller(bus, RUN_INTERACTIVE, handle, slots=SLOTS, backlog=RUN_BACKLOGS[RUN_INTERACTIVE])
    await puller.start()
    await server.settled()
    yield puller
    await puller.stop(0)


async def test_added_slots_are_for_the_consumer_that_leaves_some(server: Server, puller: Puller):
    await server.deliver(LANE, SLOTS)

    assert server.asked == {LANE: 0, BACKLOG: ADDED}, "the consumer with precedence has all that it may have"
    await server.deliver(BACKLOG, ADDED)
    assert server.asked == {LANE: 0, BACKLOG: 0}


async def test_the_backlog_leaves_the_added_slots_to_the_lane(server: Server, puller: Puller):
    await server.deliver(BACKLOG, SLOTS)

    assert server.asked == {LANE: ADDED, BACKLOG: 0}


async def test_messages_that_had_their_turn_take_no_slot_of_the_lane(server: Server, puller: Puller):
    # As many as the backlog's share: each stands in front of it, and counts as one of it.
    await server.deliver(LANE, SLOTS, turn=True)

    assert server.asked[LANE] == ADDED, "a message without a turn finds a slot"
    await server.deliver(LANE)
    assert puller.running == SLOTS + ADDED


async def test_the_slot_of_a_message_with_a_turn_frees(server: Server, puller: Puller, ends: list[asyncio.Event]):
    await server.deliver(LANE, SLOTS, turn=True)
    await server.deliver(LANE)
    before = server.asked[LANE]

    ends[0].set()
    await until(lambda: puller.running == SLOTS, why="one has ended")
    await server.settled()

    assert (before, server.asked[LANE]) == (0, 1)


async def test_a_message_that_had_its_turn_takes_the_backlogs_share(server: Server, puller: Puller):
    await server.deliver(LANE, turn=True)
    await server.deliver(LANE, SLOTS - 1)

    # Asked for before the share was taken.
    await server.deliver(BACKLOG)

    assert (server.given_back, puller.running) == (1, SLOTS)
    assert server.asked == {LANE: ADDED, BACKLOG: 0}


async def test_the_backlog_leaves_slots_for_messages_that_are_coming(server: Server, puller: Puller):
    await server.deliver(LANE, left=SLOTS - 1)

    await server.deliver(BACKLOG, left=100)

    assert server.asked == {LANE: SLOTS - 1, BACKLOG: 0}


async def test_a_slot_kept_in_vain_is_given_to_the_backlog(server: Server, puller: Puller, ends: list[asyncio.Event]):
    await server.deliver(LANE, left=SLOTS - 1)
    await server.deliver(BACKLOG, left=100)
    kept = server.asked[BACKLOG]

    # Another process has had the messages that were coming.
    ends[0].set()
    await until(lambda: server.asked[BACKLOG], why="the backlog is asked for what was kept")

    assert (kept, server.given_back) == (0, 0)


async def test_a_message_for_which_there_is_no_slot_goes_back(server: Server, puller: Puller):
    await server.deliver(LANE, left=SLOTS - 1)
    await server.deliver(BACKLOG)
    await server.deliver(LANE, SLOTS - 1)
    server.asked[LANE] += 1

    await server.deliver(LANE)

    assert (server.given_back, puller.running) == (1, SLOTS + ADDED)


async def test_a_rest_ends_after_the_last_word_of_it(server: Server, puller: Puller):
    asked = server.asked.total()
    await puller.rest(0)
    await puller.rest(600)
    await server.settled()
    during = server.asked.total()

    await puller.rest(0)
    await until(lambda: server.asked.total() > during, why="messages are asked for again")
    assert during == asked


async def test_the_end_of_a_rest_releases_no_puller_that_is_held(server: Server, puller: Puller):
    await puller.rest(0)
    await puller.hold()
    asked = server.asked.total()
    await server.settled()

    assert server.asked.total() == asked
    puller.release()
    await until(lambda: server.asked.total() > asked, why="messages are asked for again")
