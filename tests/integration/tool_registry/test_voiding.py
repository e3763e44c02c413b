"""A call that is ended for good because its job ends."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from wayline.contracts.errors import Refused
from wayline.contracts.tools import CallTool, Effect, ToolReply
from wayline.testkit import until

NOBODY_KNOWS = "nobody knows whether it took effect"


async def begun_by_nobody(world: Any, effect: Effect, tool: str, *, state: str = "started") -> CallTool:
    """A call in the ledger whose holder is gone."""
    ask = world.ask(f"effects__{tool}")
    row = (ask.tenant, ask.key, ask.job_id, ask.tool, effect, "gone", -1, ask.deadline)
    await world.store.execute(ask.tenant, world.store.sql.begin, *row)
    await world.store.execute(ask.tenant, "UPDATE calls SET state = $1", state)
    return ask


def said(reply: ToolReply) -> tuple[str, str]:
    assert reply.error is not None
    return reply.error.code, reply.error.message


async def test_a_call_that_nobody_has_begun_never_begins(world):
    await world.registry()
    ask = world.ask("effects__pay_once")

    ended = await world.void(ask)

    assert said(ended) == ("cancelled", "it had not begun")
    assert await world.call(ask) == ended.model_copy(update={"repeated": True})
    assert world.count("pay_once") == 0


async def test_a_finished_call_keeps_its_outcome(world):
    await world.registry()
    ask = world.ask("effects__pay_once")
    result = await world.call(ask)

    assert await world.void(ask) == result.model_copy(update={"repeated": True})


@pytest.mark.parametrize(
    ("effect", "tool", "state"),
    [
        (Effect.ONCE, "pay_once", "started"),
        (Effect.ONCE, "pay_once", "unknown"),
        (Effect.IDEMPOTENT, "put_idempotent", "started"),
    ],
)
async def test_a_call_whose_holder_is_gone_is_unknown_for_good(world, effect, tool, state):
    await world.registry()
    ask = await begun_by_nobody(world, effect, tool, state=state)

    ended = await world.void(ask)

    row = await world.row(ask.key)
    assert said(ended) == ("cancelled", NOBODY_KNOWS)
    assert row["state"] == "finished"
    assert world.count(tool) == 0


async def test_a_reconcile_tool_that_knows_of_no_effect_is_believed(world):
    await world.registry()
    ask = await begun_by_nobody(world, Effect.RECONCILE, "book_reconcile")

    assert said(await world.void(ask)) == ("cancelled", "it had no effect")
    assert world.count("book_reconcile") == 0


async def test_a_call_that_ends_while_it_is_waited_for_keeps_its_outcome_and_its_cost(world):
    slow = await world.server(delay_ms=1_000)
    registries = await asyncio.gather(*(world.registry(slow.settings(), cancel_wait_s=20) for _ in range(2)))
    ask = world.ask("effects__pay_once")
    calling = asyncio.create_task(world.call(ask))
    await until(lambda: slow.has_begun("pay_once", ask.key), why="the tool works")
    await world.cancel(ask.key)

    ended = await world.void(ask)

    assert len(registries) == 2
    assert (ended.status, ended.cost_usd) == ("success", Decimal("0.01"))
    assert (await calling).status == "success"


async def test_a_call_that_outlives_its_wait_is_cut_and_unknown_for_good(world):
    slow = await world.server(delay_ms=30_000)
    await world.registry(slow.settings())
    ask = world.ask("effects__pay_once")
    calling = asyncio.create_task(world.call(ask))
    await until(lambda: slow.has_begun("pay_once", ask.key), why="the tool works")

    ended = await world.void(ask)

    assert said(ended) == ("cancelled", NOBODY_KNOWS)
    await asyncio.wait({calling})


async def test_a_call_held_elsewhere_is_in_progress_until_its_lease_runs_out(world):
    await world.registry(answer_within_s=0.2)
    ask = world.ask("effects__pay_once")
    row = (ask.tenant, ask.key, ask.job_id, ask.tool, Effect.ONCE, "elsewhere", 600, ask.deadline)
    await world.store.execute(ask.tenant, world.store.sql.begin, *row)

    assert (await world.void(ask)).status == "in_progress"

    await world.store.execute(ask.tenant, "UPDATE calls SET lease_until = clock_timestamp()")
    assert said(await world.void(ask)) == ("cancelled", NOBODY_KNOWS)


async def test_a_read_that_runs_is_stopped(world):
    slow = await world.server(delay_ms=30_000)
    await world.registry(slow.settings())
    ask = world.ask("effects__look_read")
    calling = asyncio.create_task(world.call(ask))
    await until(lambda: slow.has_begun("look_read", ask.key), why="the tool works")

    assert said(await world.void(ask)) == ("cancelled", "the call was cancelled")
    assert (await calling).status == "failed"


async def test_a_key_of_another_job_is_refused(world):
    await world.registry()
    ask = world.ask("effects__pay_once")

    with pytest.raises(Refused, match="must begin with"):
        await world.void(ask.model_copy(update={"key": f"{world.tenant}/j2/1/1"}))
