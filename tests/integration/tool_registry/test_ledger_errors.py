"""Errors of the ledger's Postgres at each statement: what acted is never reported as failed, and does not act again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import asyncpg
import pytest

from wayline.contracts.errors import Retry
from wayline.contracts.tools import ToolReply
from wayline.testkit import Database
from wayline.testkit.walks import cases
from wayline.tool_registry.calls import effect_call

STATES = (
    "53100",  # disk full
    "53200",  # out of memory
    "53400",  # too many locks
    "25006",  # read only
    "57014",  # statement timeout
    "57P01",  # shutdown
    "55P03",  # lock timeout
    "40P01",  # deadlock
    "XX000",  # nothing that anybody has foreseen
)
FOR_EVER = 1_000_000
ASKED_AGAIN_MAX = 50

# A policy is looked at by every statement that touches a row. A sequence counts, because what raises is rolled back.
INJECTOR = """
CREATE SCHEMA faults;
CREATE TABLE faults.planned (key text, statement text, state text, counter text, times integer);
CREATE FUNCTION faults.pass(asked text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    fault record;
BEGIN
    FOR fault IN SELECT * FROM faults.planned WHERE key = asked AND statement = current_query() LOOP
        IF nextval(fault.counter::regclass) <= fault.times THEN
            RAISE EXCEPTION 'injected' USING ERRCODE = fault.state;
        END IF;
    END LOOP;
    RETURN true;
END $$;
GRANT USAGE ON SCHEMA faults TO wayline_tool_registry;
CREATE POLICY faults ON tools.calls AS RESTRICTIVE USING (faults.pass(key)) WITH CHECK (faults.pass(key));
"""


@dataclass
class Faults:
    """Errors that the ledger's statements are to meet."""

    platform: Any
    admin: asyncpg.Connection
    planned: int = 0

    async def plan(self, statement: str, state: str, key: str, *, times: int = 2) -> None:
        """Have the statement raise for this key, so many times."""
        self.planned += 1
        counter = f"faults.hits_{self.planned}"
        await self.admin.execute(f"CREATE SEQUENCE {counter}")
        sql = getattr(self.platform.ledger.sql, statement)
        await self.admin.execute(
            "INSERT INTO faults.planned VALUES ($1, $2, $3, $4, $5)", key, sql, state, counter, times
        )

    async def met(self) -> int:
        """Return how many of the planned faults were met at least once."""
        counters = [row["counter"] for row in await self.admin.fetch("SELECT counter FROM faults.planned")]
        return sum([await self.admin.fetchval(f"SELECT is_called FROM {counter}") for counter in counters])  # pyright: ignore


@pytest.fixture
async def faults(platform, database: Database):
    admin = await asyncpg.connect(database.dsn)
    await admin.execute(INJECTOR)
    yield Faults(platform, admin)
    await admin.close()


async def a_key_each(platform, tool: str) -> dict[str, Any]:
    return {state: platform.ask(f"effects__{tool}", job=f"j-{state}") for state in STATES}


async def last_statuses(platform, asks: dict[str, Any]) -> dict[str, str]:
    """Return the last status that the caller of each key is sent."""
    replies = await asyncio.gather(*(platform.call(ask) for ask in asks.values()))
    return {state: reply.status for state, reply in zip(asks, replies, strict=True)}


def acted(platform, asks: dict[str, Any]) -> dict[str, int]:
    keys = [key for _, key in platform.acted()]
    return {state: keys.count(ask.key) for state, ask in asks.items()}


def everywhere(value: Any) -> dict[str, Any]:
    return dict.fromkeys(STATES, value)


@pytest.mark.parametrize("tool", cases(["pay_once", "put_idempotent", "book_reconcile"]))
@pytest.mark.parametrize("statement", ["begin", "finish"])
async def test_an_error_around_the_effect_is_waited_out(platform, faults, statement, tool):
    await platform.registry(lease_s=60)
    asks = await a_key_each(platform, tool)
    for state, ask in asks.items():
        await faults.plan(statement, state, ask.key)

    assert await last_statuses(platform, asks) == everywhere("success")
    assert acted(platform, asks) == everywhere(1)
    assert await faults.met() == len(STATES)


async def test_an_error_on_reading_the_stored_result_is_waited_out(platform, faults):
    await platform.registry(lease_s=60)
    asks = await a_key_each(platform, "pay_once")
    await last_statuses(platform, asks)
    for state, ask in asks.items():
        await faults.plan("find", state, ask.key)

    assert await last_statuses(platform, asks) == everywhere("success")
    assert acted(platform, asks) == everywhere(1)
    assert await faults.met() == len(STATES)


async def test_an_error_while_the_lease_is_renewed_is_waited_out(platform, faults):
    slow = await platform.server(delay_ms=1_500)
    await platform.registry(slow.settings())
    asks = await a_key_each(platform, "pay_once")
    for state, ask in asks.items():
        await faults.plan("renew", state, ask.key)

    assert await last_statuses(platform, asks) == everywhere("success")
    assert {ask.key: slow.count("pay_once", ask.key) for ask in asks.values()} == {a.key: 1 for a in asks.values()}
    assert await faults.met() == len(STATES)


async def test_an_outcome_the_ledger_never_takes_is_unknown(platform, faults, monkeypatch):
    monkeypatch.setattr(effect_call, "RECORD_WAIT_S", 0)
    await platform.registry()
    asks = await a_key_each(platform, "pay_once")
    for state, ask in asks.items():
        await faults.plan("finish", state, ask.key, times=FOR_EVER)

    assert await last_statuses(platform, asks) == everywhere("unknown")
    assert acted(platform, asks) == everywhere(1)


async def test_an_error_on_recording_a_cut_call_is_waited_out(platform, faults):
    slow = await platform.server(delay_ms=30_000)
    await platform.registry(slow.settings(timeout_s=1), lease_s=60)
    asks = await a_key_each(platform, "pay_once")
    for state, ask in asks.items():
        await faults.plan("disown", state, ask.key)

    assert await last_statuses(platform, asks) == everywhere("unknown")
    assert await faults.met() == len(STATES)


async def left_behind(platform, asks: dict[str, Any], effect: str) -> None:
    """Put keys into the ledger whose holder is gone and whose lease has run out."""
    for ask in asks.values():
        row = (ask.tenant, ask.key, ask.job_id, ask.tool, effect, "gone", -1, ask.deadline)
        await platform.ledger.fetchval(platform.tenant, platform.ledger.sql.begin, *row, None)


async def test_an_error_on_giving_up_a_once_call_is_waited_out(platform, faults):
    await platform.registry()
    asks = await a_key_each(platform, "pay_once")
    await left_behind(platform, asks, "once")
    for state, ask in asks.items():
        await faults.plan("give_up", state, ask.key)

    assert await last_statuses(platform, asks) == everywhere("unknown")
    assert acted(platform, asks) == everywhere(0)
    assert await faults.met() == len(STATES)


async def test_an_error_while_a_dead_lease_is_taken_is_waited_out(platform, faults):
    await platform.registry()
    asks = await a_key_each(platform, "put_idempotent")
    await left_behind(platform, asks, "idempotent")
    for state, ask in asks.items():
        await faults.plan("take", state, ask.key)

    assert await last_statuses(platform, asks) == everywhere("success")
    assert acted(platform, asks) == everywhere(1)
    assert await faults.met() == len(STATES)


@pytest.mark.parametrize("statement", ["resolve", "stored"])
async def test_an_error_on_recording_a_decision_is_retryable(platform, faults, statement):
    await platform.registry(lease_s=60)
    asks = await a_key_each(platform, "pay_once")
    if statement == "stored":
        await last_statuses(platform, asks)
    for state, ask in asks.items():
        await faults.plan(statement, state, ask.key)

    async def resolved(key: str) -> ToolReply:
        for _ in range(ASKED_AGAIN_MAX):
            try:
                return await platform.resolve(key, "succeeded", "it was paid")
            except Retry:
                continue
        raise AssertionError(f"{key} was never resolved")

    replies = await asyncio.gather(*(resolved(ask.key) for ask in asks.values()))

    assert {(reply.status, reply.repeated) for reply in replies} == {("success", statement == "stored")}
    assert await faults.met() == len(STATES)


async def test_a_defect_after_the_effect_leaves_a_once_call_unknown(platform, monkeypatch):
    await platform.registry()
    ask = platform.ask("effects__pay_once")

    def broken(*args: Any, **kwargs: Any) -> ToolReply:
        raise TypeError("a reply that nobody foresaw")

    monkeypatch.setattr("wayline.tool_registry.calls.bound_tool.reply_of", broken)

    assert (await platform.call(ask)).status == "unknown"
    assert [key for _, key in platform.acted()] == [ask.key]
