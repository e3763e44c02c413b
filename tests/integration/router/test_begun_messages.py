"""How often a handler began with a message is counted in a table, for each message and over all routers."""

from __future__ import annotations

from wayline.chassis import Delivery
from wayline.router.begun_messages import BegunMessages

from .conftest import Offices


def delivery(sequence: int, consumer: str = "router") -> Delivery:
    return Delivery("SUBMIT", consumer, sequence, 30, "jobs.submit.default", headers={}, body=b"")


async def test_each_message_is_counted_for_itself_over_all_routers(offices: Offices):
    one, other = BegunMessages((await offices()).store), BegunMessages((await offices()).store)

    counted = [await table.count(delivery(1)) for table in (one, other, one)]

    assert counted == [1, 2, 3]
    assert await other.count(delivery(2)) == 1
    assert await other.count(delivery(1, "approvals")) == 1


async def test_a_handler_that_has_ended_counts_no_more(offices: Offices):
    table = BegunMessages((await offices()).store)
    await table.count(delivery(1))
    await table.count(delivery(1))

    await table.take_back(delivery(1))
    await table.take_back(delivery(2))

    assert await table.count(delivery(1)) == 2


async def test_what_was_counted_long_ago_is_forgotten(offices: Offices):
    office = await offices()
    table = BegunMessages(office.store)
    await table.count(delivery(1))
    async with office.store.system() as conn:
        await conn.execute("UPDATE begun_messages SET last_at = now() - interval '8 days'")

    await table.count(delivery(2))

    async with office.store.system() as conn:
        assert [row["sequence"] for row in await conn.fetch("SELECT sequence FROM begun_messages")] == [2]
