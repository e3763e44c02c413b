"""A person's word on an unknown outcome, and what wins over it."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from wayline.chassis import Periodic
from wayline.contracts.errors import Refused
from wayline.contracts.tools import Effect, ToolReply
from wayline.store import rls_gaps
from wayline.testkit import until
from wayline.testkit.walks import cases

PAY = "effects__pay_once"


async def unknown_call(platform, **more):
    """Put a `once` call into the ledger whose holder is gone."""
    ask = platform.ask(PAY, **more)
    row = (ask.tenant, ask.key, ask.job_id, ask.tool, Effect.ONCE, "gone", -1, ask.deadline)
    await platform.ledger.execute(ask.tenant, platform.ledger.sql.begin, *row, None)
    assert (await platform.call(ask)).status == "unknown"
    return ask


@pytest.mark.parametrize(("outcome", "status"), [("succeeded", "success"), ("failed", "failed")])
async def test_a_decision_ends_an_unknown_call_for_everybody_who_asks(platform, outcome, status):
    await platform.registry()
    ask = await unknown_call(platform)

    decided = await platform.resolve(ask.key, outcome, "as the bank says")
    again = await platform.call(ask)

    assert decided.status == status
    assert (decided.content or decided.error.message) == "as the bank says"
    assert again == decided.model_copy(update={"repeated": True})
    assert platform.times_acted("pay_once") == 0


async def test_a_result_that_arrived_meanwhile_wins_over_the_decision(platform):
    await platform.registry()
    ask = platform.ask(PAY)
    result = await platform.call(ask)

    decided = await platform.resolve(ask.key, "failed", "nobody was paid")

    assert decided == result.model_copy(update={"repeated": True})


async def test_a_late_result_does_not_undo_a_decision(platform):
    await platform.registry()
    ask = platform.ask(PAY)
    calling = asyncio.create_task(platform.call(ask))
    await platform.until_state(ask.key, "started")

    decided = await platform.resolve(ask.key, "failed", "nobody was paid")

    assert decided.status == "failed"
    assert await calling == decided.model_copy(update={"repeated": True})


async def test_of_many_decisions_at_once_one_holds(platform):
    await asyncio.gather(platform.registry(), platform.registry())
    ask = await unknown_call(platform)

    replies: list[ToolReply] = await asyncio.gather(
        *(platform.resolve(ask.key, "succeeded", f"by {n}") for n in range(8))
    )

    assert len({reply.content for reply in replies}) == 1
    assert sum(not reply.repeated for reply in replies) == 1


async def test_a_decision_on_an_unbegun_key_prevents_its_call(platform):
    await platform.registry()
    ask = platform.ask(PAY)

    await platform.resolve(ask.key, "succeeded", "paid by hand")

    assert (await platform.call(ask)).content == "paid by hand"
    assert platform.times_acted("pay_once") == 0


async def test_doing_it_again_is_a_new_key(platform):
    await platform.registry()
    ask = await unknown_call(platform)

    reply = await platform.call(ask.model_copy(update={"key": f"{ask.key}/2"}))

    assert reply.status == "success"


async def test_a_key_of_another_tenant_or_job_is_refused(platform):
    await platform.registry()
    ask = platform.ask(PAY)

    with pytest.raises(Refused, match="must begin with"):
        await platform.once(ask.model_copy(update={"key": "other/j1/1/1"}))
    with pytest.raises(Refused, match="must begin with"):
        await platform.resolve("other/j1/1/1", "succeeded")
    for key in (platform.tenant, f"{platform.tenant}/j1"):
        with pytest.raises(Refused, match="is no `<tenant>/<job>/<step>/<call>`"):
            await platform.resolve(key, "succeeded")


async def test_every_table_of_the_ledger_is_closed_to_other_tenants(platform, database):
    await platform.registry()
    ask = platform.ask(PAY)
    await platform.call(ask)
    admin = await asyncpg.connect(database.dsn)

    assert await rls_gaps(admin) == []
    assert await platform.ledger.fetch("other", "SELECT * FROM calls") == []
    await admin.close()


@pytest.mark.parametrize("state", cases(["finished", "unknown", "started"]))
async def test_rows_that_no_job_can_ask_for_are_forgotten(platform, state):
    registry = await platform.registry()
    old, new = platform.ask(PAY, job="old"), platform.ask(PAY, job="new")
    await asyncio.gather(platform.call(old), platform.call(new))
    become = """
        UPDATE calls SET state = $2, result = CASE WHEN $2 = 'finished' THEN result END,
            ended_at = CASE WHEN $2 <> 'started' THEN clock_timestamp() - make_interval(days => $3) END,
            lease_until = clock_timestamp() - make_interval(days => $3)
        WHERE key = $1
    """
    await platform.ledger.execute(platform.tenant, become, old.key, state, 50)
    await platform.ledger.execute(platform.tenant, become, new.key, state, 40)

    [forgetting] = [
        part for part in registry.service.parts if isinstance(part, Periodic) and part._what == "forgetting old calls"
    ]
    forgetting.now()

    async def forgotten() -> bool:
        return await platform.row(old.key) is None

    await until(forgotten, why="the old call is forgotten")
    assert await platform.row(new.key) is not None
