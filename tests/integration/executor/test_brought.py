"""A ticket brings its job's first record: the append of the claim says whether it is still the last one."""

from __future__ import annotations

from typing import Any

import pytest
from nats.aio.msg import Msg

from wayline.contracts import events as e
from wayline.contracts.budgets import SettleJob
from wayline.contracts.chat import NoteMessage
from wayline.contracts.jobs import RunJob
from wayline.journal import JobLog
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import until

from .conftest import ExecutorPlatform, stamp


async def order_of(platform: ExecutorPlatform, job_id: str) -> list[str]:
    """What the bus hears of a job's log from now on: reads by the leader, and records."""
    heard: list[str] = []

    async def on_read(message: Msg) -> None:
        if f'"events.default.{job_id}"' in message.data.decode():
            heard.append("read")

    async def on_record(message: Msg) -> None:
        heard.append("record")

    await platform.bus.nc.subscribe("$JS.API.STREAM.MSG.GET.EVENTS", cb=on_read)
    await platform.bus.nc.subscribe(f"live.default.{job_id}", cb=on_record)
    await platform.bus.settled()
    return heard


@pytest.mark.parametrize(("brings", "order"), [(True, ["record", "record"]), (False, ["record", "read", "record"])])
async def test_a_job_whose_ticket_brings_its_record_is_claimed_unread(
    platform: ExecutorPlatform, brings: bool, order: list[str]
):
    async with ChatServer(lambda _: Say("done")) as chat:
        await platform.executor(chat)
        heard = await order_of(platform, "j1")
        head = await platform.begin("j1", ticket=False)
        await platform.ticket("j1", head if brings else head._replace(body=b""))

        await until(lambda: heard.count("record") >= 2, why="the job is claimed")
        assert heard[: len(order)] == order
        await platform.wait_for("j1")


async def test_a_ticket_carrying_an_outdated_record_begins_nothing(platform: ExecutorPlatform):
    async with ChatServer(lambda _: Say("done")) as chat:
        head = await platform.begin("j1", ticket=False)
        last = await platform.claimed("j1", head, owner="999:1")
        await platform.ticket("j1", head)
        await platform.executor(chat)
        await platform.wait_until_empty("RUN")

        assert (await platform.events("j1"))[-1].seq == last.seq
        assert not chat.calls


async def test_a_late_ticket_of_an_ended_job_only_settles(platform: ExecutorPlatform):
    async with ChatServer(lambda _: Say("done")) as chat:
        await platform.executor(chat)
        head = await platform.begin("j1")
        await platform.wait_for("j1")
        await platform.wait_until_empty("RUN")
        before = len(await platform.events("j1"))
        late = RunJob(tenant="default", job="j1", at=head.sequence, record=head.carried())
        await platform.bus.publish(late, msg_id="late")
        await platform.wait_until_empty("RUN")

        assert len(await platform.events("j1")) == before
        assert len(chat.calls) == 1
        assert len(platform.budgets.of(SettleJob)) == 2


async def test_a_claim_that_is_overtaken_while_it_reads_is_judged_again(
    platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch
):
    """The holder before had only stalled: it writes once more after the leader was asked."""
    real, overtaken = JobLog.records, []

    async def records(self: JobLog, upto: int | None = None) -> list[list[dict[str, Any]]]:
        if not overtaken:
            overtaken.append(await log.append([note(5)], last))
        return await real(self, upto)

    def note(seq: int) -> e.ContextInjected:
        return e.ContextInjected(**stamp("j1", seq), note=NoteMessage(label="CONTEXT", text="c"))

    async with ChatServer(lambda _: Say("done")) as chat:
        log = JobLog(platform.bus, "default", "j1")
        head = await platform.begin("j1", ticket=False)
        last = await platform.claimed("j1", head, note(4), owner=f"{await platform.ticket('j1', head)}:0")
        monkeypatch.setattr(JobLog, "records", records)
        await platform.executor(chat)

        assert (await platform.wait_for("j1")).status == "completed"
        delivered = (await platform.bus.js.consumer_info("RUN", "interactive")).delivered
        assert delivered is not None and delivered.consumer_seq == 1
