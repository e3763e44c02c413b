"""A message on a log's subject that is no record of ours: readers pass over it, and a writer goes on behind it."""

from __future__ import annotations

import asyncio

import pytest

from wayline.chassis import Bus
from wayline.contracts import headers as h
from wayline.journal import Fenced, Head, JobLog, State, follow, is_record, last_record
from wayline.journal import log as journal_log
from wayline.telemetry import metrics

from .test_log import asked, begun, done, first

SUBJECT = "events.default.j1"


async def plant(bus: Bus, body: bytes = b'{"stream":"SUBMIT","seq":1}', **headers: str) -> int:
    """Put on the log what JetStream says to a publish; returns its sequence."""
    return (await bus.js.publish(SUBJECT, body, headers=headers or None)).seq


async def seqs(log: JobLog) -> list[int]:
    return [event.seq async for event in log.read()]


async def test_an_append_goes_behind_a_foreign_message(bus: Bus):
    log, head = await begun(bus)
    planted = await plant(bus)

    head = await log.append([asked(2)], head)
    head = await log.append([asked(3)], head)

    assert (head.sequence, await seqs(log)) == (planted + 2, [1, 2, 3])


async def test_a_first_record_goes_behind_foreign_messages(bus: Bus):
    await plant(bus)
    await plant(bus)

    log, head = await begun(bus)

    assert (head.sequence, await seqs(log)) == (3, [1])
    assert [event.seq for event in await log.first()] == [1]


async def test_the_last_record_is_found_before_foreign_messages(bus: Bus):
    log, head = await begun(bus)
    await plant(bus)
    await plant(bus, **{h.RECORD: "state=ended"})

    last = await log.last()

    assert last is not None
    assert (last.sequence, last.state) == (head.sequence, State.NEW)


async def test_a_log_of_foreign_messages_alone_is_no_log(bus: Bus):
    await plant(bus)
    log = JobLog(bus, "default", "j1")

    assert (await log.last(), await last_record(bus, SUBJECT), await seqs(log), await log.records()) == (
        None,
        None,
        [],
        [],
    )


@pytest.mark.parametrize("planted", ["before", "after"])
async def test_another_writers_record_beside_a_foreign_message_fences(bus: Bus, planted: str):
    log, head = await begun(bus)
    if planted == "before":
        await plant(bus)
    await JobLog(bus, "default", "j1").append([asked(2)], head)
    if planted == "after":
        await plant(bus)

    with pytest.raises(Fenced):
        await log.append([asked(2)], head)


async def test_an_append_whose_ack_was_lost_counts_behind_a_foreign_message(bus: Bus, monkeypatch: pytest.MonkeyPatch):
    log, head = await begun(bus)
    store = bus.store

    async def losing(*args, **kwargs):
        await store(*args, **kwargs)
        await plant(bus)
        monkeypatch.setattr(bus, "store", store)
        raise journal_log.WrongSequence("the ack was lost, and the append was sent again")

    monkeypatch.setattr(bus, "store", losing)
    head = await log.append([asked(2)], head)

    assert (head.sequence, await seqs(log)) == (2, [1, 2])


async def test_a_follower_passes_over_foreign_messages_and_counts_them(bus: Bus):
    counted = metrics.foreign_messages.labels("EVENTS")._value
    before = counted.get()
    await plant(bus)
    log, head = await begun(bus)
    following = follow(bus, "default", "j1")
    seen = [(await asyncio.wait_for(anext(following), 10)).seq]
    await plant(bus)
    head = await log.append([asked(2)], head)
    await plant(bus)
    await bus.nc.publish("live.default.j1", b'{"events":[]}')
    await log.append([done(3)], head)

    seen += [event.seq async for event in following if event is not None]

    assert seen == [1, 2, 3]
    assert counted.get() >= before + 3


@pytest.mark.parametrize(
    "header",
    [
        "",
        "state=ended",
        "state=dead seq=1 owner= attempt=0 epoch=0 signals=0 cost=0 lane=batch content=c",
        "state=new seq=x owner= attempt=0 epoch=0 signals=0 cost=0 lane=batch content=c",
        "state=new seq=1 owner=a:b attempt=0 epoch=0 signals=0 cost=0 lane=batch content=c",
    ],
)
def test_a_header_that_no_record_has_makes_none(header: str):
    assert not is_record({h.RECORD: header})


def test_what_a_newer_build_says_besides_is_still_a_record():
    header = Head(0, State.NEW, first().seq, "c").header()

    assert is_record({h.RECORD: header}) and is_record({h.RECORD: f"{header} more=1"})
