"""Rule 23 of the protocol: what a repeated key may and may not do."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio

from wayline.contracts.errors import Refused
from wayline.contracts.tools import Effect
from wayline.testkit import until

from .conftest import RegistryPlatform

pytestmark = [pytest.mark.asyncio(loop_scope="module")]
alone = pytest.mark.asyncio(loop_scope="function")
"""For a test that starts and stops registries, or has its own settings."""

PAY, PUT, BOOK = "effects__pay_once", "effects__put_idempotent", "effects__book_reconcile"
LOOK = "effects__look_read"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_registry(shared_platform: RegistryPlatform) -> RegistryPlatform:
    await shared_platform.registry()
    return shared_platform


async def began(platform, ask, *, effect: Effect, lease_s: float = -1, content_hash: str | None = None) -> None:
    """Put a call into the ledger that a process began which is gone; its lease ends `lease_s` from now."""
    row = (ask.tenant, ask.key, ask.job_id, ask.tool, effect, "gone", lease_s, ask.deadline)
    await platform.ledger.execute(ask.tenant, platform.ledger.sql.begin, *row, content_hash)


async def test_a_call_is_executed_and_its_outcome_recorded(shared):
    ask = shared.ask(PAY, {"amount": 3})

    reply = await shared.call(ask)

    row = await shared.row(ask.key)
    assert (reply.status, reply.content, reply.effect, reply.repeated) == ("success", "pay_once done", "once", False)
    assert str(reply.cost_usd) == "0.010000000"
    assert row is not None
    assert (row["state"], row["attempt"], row["job_id"], row["tool"]) == ("finished", 1, "j1", PAY)
    assert shared.acted() == [("pay_once", ask.key)]


async def test_a_finished_key_answers_with_its_stored_result_and_never_executes(shared):
    ask = shared.ask(PAY)
    first = await shared.call(ask)

    again = await shared.call(ask)

    assert again == first.model_copy(update={"repeated": True})
    assert shared.times_acted("pay_once") == 1


@alone
async def test_a_finished_key_answers_without_server_and_past_its_deadline(platform):
    server = await platform.server()
    await platform.registry(server.settings())
    ask = platform.ask(PAY)
    await platform.call(ask)
    server.kill()

    again = await platform.call(ask.model_copy(update={"deadline": datetime.now(UTC) - timedelta(hours=1)}))

    assert (again.status, again.repeated) == ("success", True)


@pytest.mark.parametrize("change", [{"arguments": {"amount": 400}}, {"tool": PUT}, {"user_id": "bob"}], ids=str)
@pytest.mark.parametrize("state", ["finished", "lost"])
async def test_a_key_with_other_content_is_a_conflict(shared, change, state):
    ask = shared.ask(PAY, {"amount": 3})
    if state == "finished":
        await shared.call(ask)
    else:
        await began(shared, ask, effect=Effect.ONCE, content_hash=ask.content_hash())

    with pytest.raises(Refused, match="stands for a call with other content") as refused:
        await shared.call(ask.model_copy(update=change))

    assert (refused.value.code, refused.value.status) == ("tool_key_conflict", 409)
    assert shared.times_acted("pay_once") == (state == "finished")
    assert shared.times_acted("put_idempotent") == 0


@alone
async def test_a_running_calls_key_with_other_content_is_a_conflict(platform):
    server = await platform.server(delay_ms=30_000)
    await platform.registry(server.settings(), answer_within_s=0.2)
    ask = platform.ask(PAY, {"amount": 3})
    assert (await platform.once(ask)).status == "in_progress"

    with pytest.raises(Refused, match="other content"):
        await platform.once(ask.model_copy(update={"arguments": {"amount": 400}}))


async def test_a_key_of_an_older_registry_is_answered_as_before(shared):
    ask = shared.ask(PAY, {"amount": 3})
    await began(shared, ask, effect=Effect.ONCE, content_hash=None)

    assert (await shared.call(ask)).status == "unknown"


@alone
async def test_two_registries_asked_for_one_key_at_once_execute_it_once(platform):
    await asyncio.gather(platform.registry(), platform.registry(), platform.registry())
    ask = platform.ask(PAY)

    replies = await asyncio.gather(*(platform.call(ask) for _ in range(12)))

    assert {(reply.status, reply.content) for reply in replies} == {("success", "pay_once done")}
    assert platform.times_acted("pay_once") == 1


@alone
async def test_a_call_with_a_live_lease_is_waited_for(platform):
    await platform.registry(answer_within_s=0.4)
    ask = platform.ask(PAY)
    await began(platform, ask, effect=Effect.ONCE, lease_s=30)

    reply = await platform.once(ask)

    assert reply.status == "in_progress"
    assert platform.times_acted("pay_once") == 0


async def test_a_once_call_whose_holder_died_is_unknown_and_never_executed(shared):
    ask = shared.ask(PAY)
    await began(shared, ask, effect=Effect.ONCE)

    replies = [await shared.call(ask) for _ in range(3)]

    row = await shared.row(ask.key)
    assert [reply.status for reply in replies] == ["unknown"] * 3
    assert row is not None
    assert row["state"] == "unknown"
    assert shared.times_acted("pay_once") == 0


async def test_a_dead_holders_idempotent_call_is_repeated_with_its_key(shared):
    ask = shared.ask(PUT)
    await began(shared, ask, effect=Effect.IDEMPOTENT)

    reply = await shared.call(ask)

    assert (reply.status, reply.attempts) == ("success", 2)
    assert shared.acted() == [("put_idempotent", ask.key)]


@alone
async def test_a_dead_lease_is_taken_over_by_one_of_many(platform):
    await asyncio.gather(platform.registry(), platform.registry())
    ask = platform.ask(PUT)
    await began(platform, ask, effect=Effect.IDEMPOTENT)

    replies = await asyncio.gather(*(platform.call(ask) for _ in range(8)))

    assert {reply.attempts for reply in replies} == {2}
    assert platform.times_acted("put_idempotent") == 1


@pytest.mark.parametrize("acted", [True, False], ids=["acted", "did not act"])
async def test_a_reconcile_call_whose_holder_died_is_asked_about(shared, acted):
    ask = shared.ask(BOOK)
    await began(shared, ask, effect=Effect.RECONCILE)
    if acted:
        with shared.effects.file.open("a") as file:
            file.write(f"book_reconcile {ask.key}\n")

    reply = await shared.call(ask)

    assert (reply.status, reply.content) == ("success", "book_reconcile done")
    assert shared.acted() == [("book_reconcile", ask.key)]


@alone
async def test_a_call_begun_too_often_is_unknown(platform):
    await platform.registry(attempts_max=1)
    ask = platform.ask(PUT)
    await began(platform, ask, effect=Effect.IDEMPOTENT)

    assert (await platform.call(ask)).status == "unknown"
    assert platform.times_acted("put_idempotent") == 0


async def test_past_its_deadline_a_call_is_refused_and_leaves_no_row(shared):
    late = datetime.now(UTC) - timedelta(seconds=1)
    asks = [shared.ask(tool, job=f"j{n}", deadline=late) for n, tool in enumerate((PAY, PUT, "effects__look_read"))]

    replies = [await shared.call(ask) for ask in asks]

    assert [reply.error.code for reply in replies if reply.error] == ["refused"] * 3
    assert [await shared.row(ask.key) for ask in asks] == [None] * 3
    assert shared.acted() == []


async def test_past_its_deadline_a_dead_call_is_not_executed_again(shared):
    ask = shared.ask(PUT)
    await began(shared, ask, effect=Effect.IDEMPOTENT)

    reply = await shared.call(ask.model_copy(update={"deadline": datetime.now(UTC) - timedelta(seconds=1)}))

    assert reply.status == "unknown"
    assert shared.times_acted("put_idempotent") == 0


@alone
async def test_a_long_call_keeps_its_lease_and_answers_in_progress(platform):
    slow = await platform.server(delay_ms=2_000)
    settings = {"answer_within_s": 0.4}
    await asyncio.gather(platform.registry(slow.settings(), **settings), platform.registry(slow.settings(), **settings))
    ask = platform.ask(PUT)

    first = await platform.once(ask)
    reply = await platform.call(ask)

    assert (first.status, reply.status, reply.attempts) == ("in_progress", "success", 1)
    assert slow.calls() == [("put_idempotent", ask.key)]


async def test_arguments_are_checked_before_the_ledger_hears_of_the_call(shared):
    ask = shared.ask(PAY, {"amount": "three"})

    reply = await shared.call(ask)

    assert reply.error is not None
    assert reply.error.code == "invalid_arguments"
    assert "amount: 'three' is not of type 'integer'" in reply.error.message
    assert await shared.row(ask.key) is None


async def test_an_unknown_tool_gets_the_nearest_name(shared):
    reply = await shared.call(shared.ask("effects__pay_onse"))

    assert reply.error is not None
    assert (reply.error.code, "did you mean 'effects__pay_once'?" in reply.error.message) == ("unknown_tool", True)


@alone
async def test_a_holder_that_was_given_up_still_brings_its_result(platform):
    slow = await platform.server(delay_ms=2_000)
    await platform.registry(slow.settings(), lease_s=600)
    ask = platform.ask(PAY)
    calling = asyncio.create_task(platform.call(ask))
    await until(lambda: platform.row(ask.key), why="the call has begun")
    await platform.ledger.execute(platform.tenant, "UPDATE calls SET state = 'unknown' WHERE key = $1", ask.key)

    assert (await calling).status in {"unknown", "success"}
    assert (await platform.call(ask)).status == "success"


@alone
async def test_a_read_that_charged_is_not_made_again_by_another_registry(platform):
    first = await platform.registry()
    ask = platform.ask(LOOK, {"query": "charged"})
    paid = await platform.call(ask)
    await first.stop()
    await platform.registry()

    again = await platform.call(ask.model_copy(update={"asked_before": True}))

    assert (str(paid.cost_usd), again) == ("0.020000000", paid.model_copy(update={"repeated": True}))
    assert platform.times_acted("look_read") == 1


@alone
async def test_another_read_under_the_key_costs_what_both_charged(platform):
    first = await platform.registry()
    ask = platform.ask(LOOK, {"query": "charged"})
    await platform.call(ask)
    await first.stop()
    await platform.registry()
    other = ask.model_copy(update={"asked_before": True, "arguments": {"query": "charged otherwise"}})

    replies = [await platform.call(other), await platform.call(other)]

    assert [str(reply.cost_usd) for reply in replies] == ["0.040000000"] * 2
    assert platform.times_acted("look_read") == 2


async def test_a_read_that_charged_nothing_leaves_no_row(shared):
    ask = shared.ask(LOOK)

    await shared.call(ask)

    assert await shared.row(ask.key) is None


@alone
async def test_a_charged_read_of_a_job_that_ends_is_its_cost(platform):
    first = await platform.registry()
    ask = platform.ask(LOOK, {"query": "charged"})
    paid = await platform.call(ask)
    await first.stop()
    await platform.registry()

    assert await platform.void(ask) == paid.model_copy(update={"repeated": True})
