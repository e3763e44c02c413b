"""A call that is ended for good because its job ends."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from wayline.contracts.errors import Refused
from wayline.contracts.tools import CallTool, Effect, ToolReply
from wayline.testkit import until
from wayline.testkit.walks import cases

NOT_KNOWN = "it is not known whether it took effect"


async def call_without_holder(platform: Any, effect: Effect, tool: str, *, state: str = "started") -> CallTool:
    """Put a call into the ledger whose holder is gone."""
    ask = platform.ask(f"effects__{tool}")
    row = (ask.tenant, ask.key, ask.job_id, ask.tool, effect, "gone", -1, ask.deadline)
    await platform.ledger.execute(ask.tenant, platform.ledger.sql.begin, *row, None)
    await platform.ledger.execute(ask.tenant, "UPDATE calls SET state = $1", state)
    return ask


def code_and_message(reply: ToolReply) -> tuple[str, str]:
    assert reply.error is not None
    return reply.error.code, reply.error.message


async def test_an_unbegun_call_never_begins_once_voided(platform):
    await platform.registry()
    ask = platform.ask("effects__pay_once")

    ended = await platform.void(ask)

    assert code_and_message(ended) == ("cancelled", "it had not begun")
    assert await platform.call(ask) == ended.model_copy(update={"repeated": True})
    assert platform.times_acted("pay_once") == 0


async def test_a_finished_call_keeps_its_outcome(platform):
    await platform.registry()
    ask = platform.ask("effects__pay_once")
    result = await platform.call(ask)

    assert await platform.void(ask) == result.model_copy(update={"repeated": True})


@pytest.mark.parametrize(
    ("effect", "tool", "state"),
    cases(
        [
            (Effect.ONCE, "pay_once", "started"),
            (Effect.ONCE, "pay_once", "unknown"),
            (Effect.IDEMPOTENT, "put_idempotent", "started"),
        ]
    ),
)
async def test_a_call_whose_holder_is_gone_is_unknown_for_good(platform, effect, tool, state):
    await platform.registry()
    ask = await call_without_holder(platform, effect, tool, state=state)

    ended = await platform.void(ask)

    row = await platform.row(ask.key)
    assert code_and_message(ended) == ("cancelled", NOT_KNOWN)
    assert row["state"] == "finished"
    assert platform.times_acted(tool) == 0


async def test_a_reconcile_tool_that_knows_of_no_effect_is_believed(platform):
    await platform.registry()
    ask = await call_without_holder(platform, Effect.RECONCILE, "book_reconcile")

    assert code_and_message(await platform.void(ask)) == ("cancelled", "it had no effect")
    assert platform.times_acted("book_reconcile") == 0


async def test_a_call_ending_during_its_void_keeps_outcome_and_cost(platform):
    slow = await platform.server(delay_ms=1_000)
    registries = await asyncio.gather(*(platform.registry(slow.settings(), cancel_wait_s=20) for _ in range(2)))
    ask = platform.ask("effects__pay_once")
    calling = asyncio.create_task(platform.call(ask))
    await until(lambda: slow.has_begun("pay_once", ask.key), why="the tool works")
    await platform.cancel(ask.key)

    ended = await platform.void(ask)

    assert len(registries) == 2
    assert (ended.status, ended.cost_usd) == ("success", Decimal("0.01"))
    assert (await calling).status == "success"


async def test_a_voided_call_outliving_its_wait_is_cut(platform):
    slow = await platform.server(delay_ms=30_000)
    await platform.registry(slow.settings())
    ask = platform.ask("effects__pay_once")
    calling = asyncio.create_task(platform.call(ask))
    await until(lambda: slow.has_begun("pay_once", ask.key), why="the tool works")

    ended = await platform.void(ask)

    assert code_and_message(ended) == ("cancelled", NOT_KNOWN)
    await asyncio.wait({calling})


async def test_a_call_held_elsewhere_is_in_progress_for_its_lease(platform):
    await platform.registry(answer_within_s=0.2)
    ask = platform.ask("effects__pay_once")
    row = (ask.tenant, ask.key, ask.job_id, ask.tool, Effect.ONCE, "elsewhere", 600, ask.deadline)
    await platform.ledger.execute(ask.tenant, platform.ledger.sql.begin, *row, None)

    assert (await platform.void(ask)).status == "in_progress"

    await platform.ledger.execute(ask.tenant, "UPDATE calls SET lease_until = clock_timestamp()")
    assert code_and_message(await platform.void(ask)) == ("cancelled", NOT_KNOWN)


async def test_a_read_that_runs_is_stopped(platform):
    slow = await platform.server(delay_ms=30_000)
    await platform.registry(slow.settings())
    ask = platform.ask("effects__look_read")
    calling = asyncio.create_task(platform.call(ask))
    await until(lambda: slow.has_begun("look_read", ask.key), why="the tool works")

    assert code_and_message(await platform.void(ask)) == ("cancelled", "the call was cancelled")
    assert (await calling).status == "failed"


async def test_a_key_of_another_job_is_refused(platform):
    await platform.registry()
    ask = platform.ask("effects__pay_once")

    with pytest.raises(Refused, match="must begin with"):
        await platform.void(ask.model_copy(update={"key": f"{platform.tenant}/j2/1/1"}))
