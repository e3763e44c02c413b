"""Rule 23 of the protocol: what a repeated key may and may not do."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from wayline.contracts.tools import Effect
from wayline.testkit import until

PAY, PUT, BOOK = "effects__pay_once", "effects__put_idempotent", "effects__book_reconcile"


async def began(world, ask, *, effect: Effect, lease_s: float = -1) -> None:
    """Somebody has begun this call and is gone; its lease ends `lease_s` from now."""
    row = (ask.tenant, ask.key, ask.job_id, ask.tool, effect, "gone", lease_s, ask.deadline)
    await world.store.execute(ask.tenant, world.store.sql.begin, *row)


async def test_a_call_is_executed_and_its_outcome_recorded(world):
    await world.registry()
    ask = world.ask(PAY, {"amount": 3})

    reply = await world.call(ask)

    row = await world.row(ask.key)
    assert (reply.status, reply.content, reply.effect, reply.repeated) == ("success", "pay_once done", "once", False)
    assert str(reply.cost_usd) == "0.010000000"
    assert row is not None
    assert (row["state"], row["attempt"], row["job_id"], row["tool"]) == ("finished", 1, "j1", PAY)
    assert world.acted() == [("pay_once", ask.key)]


async def test_a_finished_key_answers_with_its_stored_result_and_never_executes(world):
    await world.registry()
    ask = world.ask(PAY)
    first = await world.call(ask)

    again = await world.call(ask)

    assert again == first.model_copy(update={"repeated": True})
    assert world.count("pay_once") == 1


async def test_a_finished_key_answers_even_when_its_server_is_gone_and_its_deadline_passed(world):
    server = await world.server()
    await world.registry(server.settings())
    ask = world.ask(PAY)
    await world.call(ask)
    server.kill()

    again = await world.call(ask.model_copy(update={"deadline": datetime.now(UTC) - timedelta(hours=1)}))

    assert (again.status, again.repeated) == ("success", True)


async def test_two_registries_asked_for_one_key_at_once_execute_it_once(world):
    await asyncio.gather(world.registry(), world.registry(), world.registry())
    ask = world.ask(PAY)

    replies = await asyncio.gather(*(world.call(ask) for _ in range(12)))

    assert {(reply.status, reply.content) for reply in replies} == {("success", "pay_once done")}
    assert world.count("pay_once") == 1


async def test_a_call_with_a_live_lease_is_waited_for(world):
    await world.registry(answer_within_s=0.4)
    ask = world.ask(PAY)
    await began(world, ask, effect=Effect.ONCE, lease_s=30)

    reply = await world.once(ask)

    assert reply.status == "in_progress"
    assert world.count("pay_once") == 0


async def test_a_once_call_whose_holder_died_is_unknown_and_never_executed(world):
    await world.registry()
    ask = world.ask(PAY)
    await began(world, ask, effect=Effect.ONCE)

    replies = [await world.call(ask) for _ in range(3)]

    row = await world.row(ask.key)
    assert [reply.status for reply in replies] == ["unknown"] * 3
    assert row is not None
    assert row["state"] == "unknown"
    assert world.count("pay_once") == 0


async def test_an_idempotent_call_whose_holder_died_is_executed_again_under_the_same_key(world):
    await world.registry()
    ask = world.ask(PUT)
    await began(world, ask, effect=Effect.IDEMPOTENT)

    reply = await world.call(ask)

    assert (reply.status, reply.attempts) == ("success", 2)
    assert world.acted() == [("put_idempotent", ask.key)]


async def test_a_dead_lease_is_taken_over_by_one_of_many(world):
    await asyncio.gather(world.registry(), world.registry())
    ask = world.ask(PUT)
    await began(world, ask, effect=Effect.IDEMPOTENT)

    replies = await asyncio.gather(*(world.call(ask) for _ in range(8)))

    assert {reply.attempts for reply in replies} == {2}
    assert world.count("put_idempotent") == 1


@pytest.mark.parametrize("acted", [True, False], ids=["acted", "did not act"])
async def test_a_reconcile_call_whose_holder_died_is_asked_about(world, acted):
    await world.registry()
    ask = world.ask(BOOK)
    await began(world, ask, effect=Effect.RECONCILE)
    if acted:
        with world.effects.file.open("a") as file:
            file.write(f"book_reconcile {ask.key}\n")

    reply = await world.call(ask)

    assert (reply.status, reply.content) == ("success", "book_reconcile done")
    assert world.acted() == [("book_reconcile", ask.key)]


async def test_a_call_that_was_begun_too_often_is_left_to_a_person(world):
    await world.registry(attempts_max=1)
    ask = world.ask(PUT)
    await began(world, ask, effect=Effect.IDEMPOTENT)

    assert (await world.call(ask)).status == "unknown"
    assert world.count("put_idempotent") == 0


async def test_past_its_deadline_a_call_is_refused_and_leaves_no_row(world):
    await world.registry()
    late = datetime.now(UTC) - timedelta(seconds=1)
    asks = [world.ask(tool, job=f"j{n}", deadline=late) for n, tool in enumerate((PAY, PUT, "effects__look_read"))]

    replies = [await world.call(ask) for ask in asks]

    assert [reply.error.code for reply in replies if reply.error] == ["refused"] * 3
    assert [await world.row(ask.key) for ask in asks] == [None] * 3
    assert world.acted() == []


async def test_past_its_deadline_a_dead_call_is_not_executed_again(world):
    await world.registry()
    ask = world.ask(PUT)
    await began(world, ask, effect=Effect.IDEMPOTENT)

    reply = await world.call(ask.model_copy(update={"deadline": datetime.now(UTC) - timedelta(seconds=1)}))

    assert reply.status == "unknown"
    assert world.count("put_idempotent") == 0


async def test_a_long_call_keeps_its_lease_and_its_caller_is_told_to_ask_again(world):
    slow = await world.server(delay_ms=2_000)
    settings = {"answer_within_s": 0.4}
    await asyncio.gather(world.registry(slow.settings(), **settings), world.registry(slow.settings(), **settings))
    ask = world.ask(PUT)

    first = await world.once(ask)
    reply = await world.call(ask)

    assert (first.status, reply.status, reply.attempts) == ("in_progress", "success", 1)
    assert slow.calls() == [("put_idempotent", ask.key)]


async def test_arguments_are_checked_before_the_ledger_hears_of_the_call(world):
    await world.registry()
    ask = world.ask(PAY, {"amount": "three"})

    reply = await world.call(ask)

    assert reply.error is not None
    assert reply.error.code == "invalid_arguments"
    assert "amount: 'three' is not of type 'integer'" in reply.error.message
    assert await world.row(ask.key) is None


async def test_an_unknown_tool_is_told_the_nearest_name(world):
    await world.registry()

    reply = await world.call(world.ask("effects__pay_onse"))

    assert reply.error is not None
    assert (reply.error.code, "did you mean 'effects__pay_once'?" in reply.error.message) == ("unknown_tool", True)


async def test_a_holder_that_was_given_up_still_brings_its_result(world):
    slow = await world.server(delay_ms=2_000)
    await world.registry(slow.settings(), lease_s=600)
    ask = world.ask(PAY)
    calling = asyncio.create_task(world.call(ask))
    await until(lambda: world.row(ask.key), why="the call has begun")
    await world.store.execute(world.tenant, "UPDATE calls SET state = 'unknown' WHERE key = $1", ask.key)

    assert (await calling).status in {"unknown", "success"}
    assert (await world.call(ask)).status == "success"
