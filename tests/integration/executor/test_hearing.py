"""A signal is heard whenever it comes: before a claim, while it is made, after it."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from functools import partial

import pytest

from wayline.chassis import Bus
from wayline.contracts import events as e
from wayline.contracts import headers as h
from wayline.contracts.jobs import Cancel, RaiseBudget, Signal
from wayline.executor.decide.approvals import judge_decision
from wayline.executor.decide.client_calls import end_calls
from wayline.executor.hold import signals
from wayline.executor.hold.log_writer import LogWriter
from wayline.executor.hold.signals import Meanings
from wayline.journal import Job, JobLog
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import until
from wayline.testkit.walks import cases

from .conftest import ExecutorPlatform


async def test_a_cancel_that_came_before_the_claim_is_heard(platform: ExecutorPlatform):
    async with ChatServer(lambda _: Say("done")) as chat:
        await platform.begin("j1")
        await platform.signal("j1", Cancel(reason="no longer needed"))
        await platform.executor(chat)

        assert (await platform.wait_for("j1")).status == "cancelled"
        assert not chat.calls


async def test_a_cancel_stored_right_after_the_leader_read_is_heard(
    platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch
):
    """Its hint comes before the answer, which does not know of it yet."""
    asked: list[str] = []

    async def newest(bus: Bus, tenant: str, job_id: str) -> int:
        asked.append(job_id)
        if len(asked) > 1:
            return await known(bus, tenant, job_id)
        await platform.signal(job_id, Cancel(reason="no longer needed"))
        await bus.settled()
        return 0

    known = signals.newest
    monkeypatch.setattr(signals, "newest", newest)
    async with ChatServer(lambda _: Say("done")) as chat:
        await platform.executor(chat)
        await platform.begin("j1")

        assert (await platform.wait_for("j1")).status == "cancelled"
        await until(lambda: len(asked) == 2, why="the hint made it look")
        assert not chat.calls


async def test_a_signal_that_comes_while_others_are_read_is_noted_once(platform: ExecutorPlatform):
    head = await platform.begin("j1", ticket=False)
    job = Job(job_id="j1", tenant="default", seq=head.seq)
    writer = LogWriter(JobLog(platform.bus, "default", "j1"), head, job)
    first, second = [await platform.signal("j1", RaiseBudget(budget_usd=Decimal(usd))) for usd in (1, 2)]

    for newest in (first, second):
        await signals.hear(
            platform.bus,
            "default",
            "j1",
            writer,
            newest,
            meanings=Meanings(judge_decision, partial(end_calls, tokens_max=1_000)),
        )

    assert writer.signals_seen == second
    assert [event.budget_usd for event in writer._noted if isinstance(event, e.BudgetRaised)] == [
        Decimal(1),
        Decimal(2),
    ]


@pytest.mark.parametrize("line", cases([b"Note: caf\xe9", b"Status: 204", b"Status: 503", b"Nats-Sequence: 1"]))
async def test_a_signal_is_heard_whatever_else_its_headers_say(platform: ExecutorPlatform, line: bytes):
    """Anything that speaks NATS may send one; its headers are not always text, nor what they look like."""
    cancel = Signal(tenant="default", job_id="j1", signal=Cancel(reason="no longer needed"))
    nc, body = platform.bus.nc, cancel.to_wire()
    headers = b"NATS/1.0\r\n%b\r\n\r\n" % line
    async with ChatServer(lambda _: Say("done")) as chat:
        await platform.begin("j1")
        await platform.signal("j1", RaiseBudget(budget_usd=Decimal(1)))
        sizes = b"%d %d" % (len(headers), len(headers) + len(body))
        await nc._send_command(b"HPUB signals.default.j1 %b\r\n%b%b\r\n" % (sizes, headers, body))
        await nc.flush()
        await platform.executor(chat)

        assert (await asyncio.wait_for(platform.wait_for("j1"), 15)).status == "cancelled"
        assert not chat.calls


@pytest.mark.parametrize(
    "body", cases([b"{not json", b'{"signal": {"$claim": 5}}', b'{"signal": {"$claim": "default/j1/00"}}'])
)
async def test_a_signal_whose_fields_were_never_moved_out_means_nothing(platform: ExecutorPlatform, body: bytes):
    async with ChatServer(lambda _: Say("done")) as chat:
        await platform.begin("j1")
        await platform.bus.store("signals.default.j1", body, {h.CLAIMS: "1"})
        await platform.executor(chat)

        assert (await asyncio.wait_for(platform.wait_for("j1"), 15)).status == "completed"
