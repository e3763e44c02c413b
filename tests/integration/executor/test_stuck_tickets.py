"""Tickets of jobs that have ended: they go, whatever is wrong with what should follow the end."""

from __future__ import annotations

from typing import Any

import pytest

from wayline.chassis.handling import worker
from wayline.chassis.topology import RUN_INTERACTIVE
from wayline.contracts import headers as h
from wayline.contracts.budgets import SettleJob
from wayline.contracts.errors import Reject
from wayline.executor import run_tickets
from wayline.executor.perform import follow_up
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit.walks import cases

from .conftest import ExecutorPlatform


async def letters(platform: ExecutorPlatform) -> list[dict[str, str]]:
    state = (await platform.bus.js.stream_info("DEAD")).state
    return [(await platform.bus.js.get_msg("DEAD", n)).headers or {} for n in range(1, state.last_seq + 1)]


@pytest.mark.parametrize("reply_to", cases(["_INBOX.a\tb", "_INBOX.a\x01b", "_INBOX. b"]))
async def test_a_job_whose_reply_cannot_be_sent_is_settled_and_acked(platform: ExecutorPlatform, reply_to: str):
    """A build that was less strict may have let it in."""
    async with ChatServer(lambda _: Say("done")) as chat:
        await platform.executor(chat)
        await platform.begin("j1", reply_to=reply_to)
        await platform.wait_for("j1")
        await platform.wait_until_empty("RUN")

    assert len(platform.budgets.of(SettleJob)) == 1
    assert await letters(platform) == []


async def test_a_reply_that_the_bus_refuses_holds_nothing_up(
    platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("wayline.journal.outcome.may_reply_to", lambda *_: True)
    async with ChatServer(lambda _: Say("done")) as chat:
        await platform.executor(chat)
        await platform.begin("j1", reply_to="_INBOX.a\tb")
        await platform.wait_for("j1")
        await platform.wait_until_empty("RUN")

    assert len(platform.budgets.of(SettleJob)) == 1


async def test_a_ticket_whose_handling_keeps_failing_is_settled_and_put_aside(
    platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch
):
    async def broken(*_: Any) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(worker, "ATTEMPTS_MAX", 3)
    monkeypatch.setattr(follow_up, "send_result", broken)
    async with ChatServer(lambda _: Say("done")) as chat:
        await platform.executor(chat)
        await platform.begin("j1")
        ended = await platform.wait_for("j1")
        await platform.wait_until_empty("RUN")

    [letter] = await letters(platform)
    assert letter[h.DEAD_CODE] == "undeliverable"
    assert "ZeroDivisionError: a defect" in letter[h.DEAD_REASON]
    # A settlement may be asked for again, where its answer was slow.
    assert {one.cost_usd for one in platform.budgets.of(SettleJob)} == {ended.cost_usd}


async def test_a_ticket_goes_although_its_job_cannot_be_settled(
    platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch
):
    async def refused(*_: Any) -> None:
        raise Reject("no such tenant")

    monkeypatch.setattr(worker, "ATTEMPTS_MAX", 2)
    monkeypatch.setattr("wayline.executor.adapters.budgets.Budgets.settle", refused)
    async with ChatServer(lambda _: Say("done")) as chat:
        await platform.executor(chat)
        await platform.begin("j1")
        await platform.wait_for("j1")
        await platform.wait_until_empty("RUN")

    [letter] = await letters(platform)
    assert "Reject: no such tenant; and before it was put aside: Reject" in letter[h.DEAD_REASON]


async def test_restarts_that_spent_deliveries_do_not_put_a_ticket_aside(
    platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch
):
    failed: list[str] = []
    judge = run_tickets.judge

    def broken_once(*given: Any) -> Any:
        if not failed:
            failed.append("once")
            raise ZeroDivisionError("a defect")
        return judge(*given)

    monkeypatch.setattr(run_tickets, "judge", broken_once)
    await platform.begin("j1")
    pulled = await platform.bus.js.pull_subscribe_bind(consumer=RUN_INTERACTIVE.name, stream="RUN")
    for _ in range(worker.ATTEMPTS_MAX + 1):
        (ticket,) = await pulled.fetch(1, timeout=5)
        await ticket.nak()
    await pulled.unsubscribe()
    async with ChatServer(lambda _: Say("done")) as chat:
        await platform.executor(chat)
        await platform.wait_for("j1")
        await platform.wait_until_empty("RUN")

    assert failed and await letters(platform) == []
