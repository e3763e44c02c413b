"""Reply subjects that name another's log, signals or waits leave a job as it is."""

from __future__ import annotations

import asyncio

import pytest

from wayline.contracts import headers as h
from wayline.journal import Head, JobLog, State
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import until

from .conftest import chatting

PLANTED = ("events.{t}.j1", "signals.{t}.j1", "due.{t}.j1.1-1", "live.{t}.j1", "jobs.run.interactive.{t}")
RECORD = {h.RECORD: Head(0, State.ENDED, 1, "c").header()}


async def plant(platform) -> None:
    """As a client of tenant `default`, and as the gateway with bytes of its own."""
    gateway = platform.services["gateway"].bus
    await gateway.request("$O.PAYLOADS.C.carrier", b'{"signal":{"type":"cancel"}}', timeout_s=2, headers=RECORD)
    for subject in PLANTED:
        reply = subject.format(t="default")
        await platform.client.publish("jobs.submit.default", b"{}", reply=reply, headers=RECORD)
        await platform.client.publish("signals.default.other", b"{}", reply=reply, headers=RECORD)
        read = b'{"last_by_subj":"$O.PAYLOADS.C.carrier"}'
        await gateway.nc.publish(f"{gateway.api}.DIRECT.GET.OBJ_PAYLOADS", read, reply=reply)
    await platform.client.flush()
    await gateway.request(f"{gateway.api}.STREAM.MSG.GET.OBJ_PAYLOADS", b'{"seq":1}', timeout_s=2)


@pytest.mark.parametrize("moment", ["before its first record", "while its model answers"])
async def test_a_job_completes_despite_messages_planted_on_its_subjects(platform, moment: str):
    go = asyncio.Event()
    async with ChatServer(lambda _: Say(text="so", hold=go)) as chat:
        await platform.start("gateway")
        if moment == "before its first record":
            await plant(platform)
            go.set()
        await platform.start("router", "executor", "tool_registry", executor=chatting(chat))
        await platform.submit("j1", model="chat/m")
        if moment == "while its model answers":
            await until(lambda: bool(chat.calls), why="the model is asked")
            await plant(platform)
            go.set()
        ended = await platform.wait_for("j1")

    assert (ended.status, ended.answer) == ("completed", "so")
    stored = (await platform.bus.js.stream_info("EVENTS", subjects_filter="events.*.j1")).state.subjects
    assert stored == {"events.default.j1": len(await JobLog(platform.bus, "default", "j1").records())}
