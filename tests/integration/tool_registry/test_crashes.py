"""kill -9 of a registry around and inside a call; the process that is asked next may only do what the effect allows."""

from __future__ import annotations

import asyncio

import pytest

from wayline.chassis import Failpoint
from wayline.contracts.errors import Retry
from wayline.testkit import until

BEFORE, BEGUN = Failpoint.REGISTRY_LEDGER_BEFORE, Failpoint.REGISTRY_LEDGER_AFTER
ACTED, FINISHED = Failpoint.REGISTRY_EFFECT_AFTER, Failpoint.REGISTRY_FINISH_AFTER


@pytest.mark.parametrize(
    ("tool", "point", "status", "acted"),
    [
        ("pay_once", BEFORE, "success", 1),
        ("pay_once", BEGUN, "unknown", 0),
        ("pay_once", ACTED, "unknown", 1),
        ("pay_once", FINISHED, "success", 1),
        ("put_idempotent", ACTED, "success", 2),
        ("book_reconcile", BEGUN, "success", 1),
        ("book_reconcile", ACTED, "success", 1),
        ("look_read", ACTED, "success", 2),
    ],
    ids=str,
)
async def test_after_a_kill_the_next_registry_does_what_the_effect_allows(platform, tool, point, status, acted):
    doomed = await platform.forked(point)
    ask = platform.ask(f"effects__{tool}")
    with pytest.raises(Retry):
        await platform.once(ask, timeout_s=2)
    assert await doomed.ended() == -9

    await platform.registry()
    reply = await platform.call(ask)

    assert reply.status == status
    assert platform.acted() == [(tool, ask.key)] * acted


async def test_a_kill_during_calls_repeats_no_once_or_reconcile_tool(platform):
    slow = await platform.server(delay_ms=4_000)
    doomed = await platform.forked(servers=(slow.settings(),))
    tools = ("pay_once", "put_idempotent", "book_reconcile")
    asks = {tool: platform.ask(f"effects__{tool}", job=tool) for tool in tools}
    asking = [asyncio.create_task(platform.once(ask, timeout_s=1)) for ask in asks.values()]
    for ask in asks.values():
        await until(lambda key=ask.key: platform.row(key), why="the call has begun")
    doomed.kill()
    await asyncio.wait(asking)

    await platform.registry(slow.settings())
    replies = {tool: await platform.call(ask) for tool, ask in asks.items()}

    assert {tool: reply.status for tool, reply in replies.items()} == {
        "pay_once": "unknown",
        "put_idempotent": "success",
        "book_reconcile": "success",
    }
    assert (slow.count("pay_once") <= 1, slow.count("book_reconcile")) == (True, 1)
    assert {key for _, key in slow.calls()} <= {ask.key for ask in asks.values()}
