"""The log of one job on a real bus: one writer, nothing lost, nothing twice."""

import asyncio
import sys
from datetime import UTC, datetime
from decimal import Decimal
from unittest.mock import ANY

import orjson
import pytest
from nats.aio.msg import Msg

from wayline.chassis import Bus
from wayline.chassis.claim_check.claims import MESSAGE_MAX
from wayline.contracts import events as e
from wayline.contracts import headers as h
from wayline.contracts import ids
from wayline.contracts.errors import Bug, Unavailable
from wayline.contracts.jobs import SubmitJob
from wayline.journal import Fenced, Head, JobLog, State, bulk_read, follow, leader_read
from wayline.journal import log as journal_log
from wayline.journal.record import CARRIED_MAX_BYTES
from wayline.testkit import until


def stamp(seq: int) -> dict:
    trace = e.SpanRef(trace_id=ids.trace_id("default", "j1"), span_id=ids.job_span("default", "j1"))
    return {"job_id": "j1", "seq": seq, "at": datetime.now(UTC), "trace": trace}


def first(text: str = "why?") -> e.JobSubmitted:
    job = SubmitJob(tenant="default", agent="a", input=text)
    return e.JobSubmitted(**stamp(1), tenant="default", job=job, content_hash="c")


def asked(seq: int, reason: str = "") -> e.CancelRequested:
    return e.CancelRequested(**stamp(seq), reason=reason)


def done(seq: int) -> e.JobCompleted:
    return e.JobCompleted(**stamp(seq), answer="so")


async def begun(bus: Bus, text: str = "why?", *, job_id: str = "j1"):
    log = JobLog(bus, "default", job_id)
    return log, await log.begin([first(text)], content_hash="c", lane="batch")


async def test_a_ticket_can_bring_the_first_record_where_it_is_small(bus):
    log, head = await begun(bus)
    brought = head.carried()
    assert brought is not None
    last = await log.last()
    assert last is not None
    assert Head.brought(head.sequence, brought) == last._replace(msg_id="")

    just = "x" * (CARRIED_MAX_BYTES - len(head.body) + len("why?"))
    _, largest = await begun(bus, just, job_id="j2")
    _, larger = await begun(bus, just + "x", job_id="j3")
    assert len(largest.body) == CARRIED_MAX_BYTES
    assert (largest.carried() is None, larger.carried() is None) == (False, True)


async def test_the_last_record_says_what_the_next_decision_needs(bus):
    log, head = await begun(bus)
    claimed = e.JobClaimed(**stamp(2), executor="x", epoch=1, owner="7:2", attempt=1)

    given = {"owner": "7:2", "attempt": 1, "epoch": 1, "signals_seen": 9, "cost": Decimal("0.5")}
    head = await log.append([claimed], head, **given)

    last = await log.last()
    assert last is not None
    assert (last.state, last.owner_ticket, last.owner_delivery) == (State.ACTIVE, 7, 2)
    assert (last.sequence, last.seq, last.attempt, last.epoch) == (head.sequence, 2, 1, 1)
    assert (last.signals_seen, last.lane, last.content_hash) == (9, "batch", "c")
    assert last.events == [claimed]
    assert await log.append([asked(3)], head) == head._replace(sequence=ANY, seq=3, msg_id=ANY)
    assert (await log.append([asked(4)], await log.last(), cost=None)).cost is None


async def test_a_writer_who_was_overtaken_is_refused(bus):
    log, head = await begun(bus)
    await log.append([asked(2, "the new holder's")], head)

    with pytest.raises(Fenced):
        await log.append([asked(2, "a zombie's")], head)

    assert [event.reason async for event in log.read(after_seq=1)] == ["the new holder's"]


async def test_a_second_first_record_is_refused(bus):
    log, _ = await begun(bus)

    with pytest.raises(Fenced):
        await log.begin([first()], content_hash="c", lane="batch")


async def test_an_append_with_a_lost_ack_counts_once(bus, monkeypatch):
    log, head = await begun(bus)
    store_once, lost = bus._store_once, []

    async def losing_the_first_ack(*args):
        ack = await store_once(*args)
        if not lost:
            lost.append(ack)
            raise TimeoutError
        return ack

    monkeypatch.setattr(bus, "_store_once", losing_the_first_ack)
    head = await log.append([asked(2)], head)

    assert head.sequence == lost[0].seq
    assert [event.seq async for event in log.read()] == [1, 2]


async def test_an_append_is_not_left_undecided_while_the_leader_is_away(bus, monkeypatch):
    """Its ack is lost, and nobody can say whether the record is in: the writer must not go on as if it were not."""
    log, head = await begun(bus)
    store_once, read, lost, away = bus._store_once, journal_log.leader_read, [], []

    async def losing_the_first_ack(*args):
        ack = await store_once(*args)
        if not lost:
            lost.append(ack)
            raise TimeoutError
        return ack

    async def away_at_first(*args):
        away.append(args)
        if len(away) == 1:
            raise Unavailable("the bus")
        return await read(*args)

    monkeypatch.setattr(bus, "_store_once", losing_the_first_ack)
    monkeypatch.setattr(journal_log, "leader_read", away_at_first)

    head = await log.append([asked(2)], head)

    assert (head.sequence, len(away)) == (lost[0].seq, 2)


async def test_a_record_that_never_comes_is_not_waited_for_without_end(bus, monkeypatch):
    """A log that was purged after the leader told its end, say."""
    monkeypatch.setattr(journal_log, "BEHIND_MAX_S", 0.1)
    log, head = await begun(bus)

    with pytest.raises(Unavailable, match="ends before sequence 9"):
        await log.records(upto=9)
    assert len(await log.records(upto=head.sequence)) == 1


async def test_a_read_ends_at_the_given_record(bus):
    """Who claims a job folds what the leader told, not what somebody has written since."""
    log, head = await begun(bus)
    last = await log.append([asked(2)], head)
    await log.append([asked(3)], last)

    records = await log.records(upto=last.sequence)

    assert [value["seq"] for record in records for value in record] == [1, 2]


async def test_an_unanswered_read_is_retried_then_given_up(bus, monkeypatch):
    pauses: list[float] = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await real(0)

    async def no_leader(*_: object, **__: object) -> Msg:
        return Msg(bus.nc, data=b'{"error": {"code": 503, "description": "no leader"}}')

    monkeypatch.setattr(asyncio, "sleep", sleep)
    with pytest.raises(Unavailable):
        await anext(bulk_read(bus, "NOWHERE", "events.default.j1"))
    assert pauses == [journal_log.READ_RETRY_S] * (journal_log.READ_TRIES - 1)

    pauses.clear()
    monkeypatch.setattr(bus, "request", no_leader)
    with pytest.raises(Unavailable):
        await leader_read(bus, "EVENTS", "events.default.j1")
    assert pauses == [journal_log.READ_RETRY_S] * (journal_log.READ_TRIES - 1)


async def test_a_missing_stream_is_a_bug_and_not_a_missing_log(bus):
    """Whoever believes so acks the job's ticket."""
    assert await JobLog(bus, "default", "nobody").last() is None
    await bus.js.delete_stream("EVENTS")

    with pytest.raises(Bug, match="stream not found"):
        await JobLog(bus, "default", "nobody").last()


async def test_events_are_yielded_as_they_are_read(bus, monkeypatch):
    monkeypatch.setattr(journal_log, "READ_BATCH", 1)
    log, head = await begun(bus)
    for seq in range(2, 6):
        head = await log.append([asked(seq)], head)
    batch, read = journal_log._batch, []

    async def counted(*args):
        read.append(args)
        return await batch(*args)

    monkeypatch.setattr(journal_log, "_batch", counted)
    telling = log.read()

    assert ((await anext(telling)).seq, len(read)) == (1, 1)
    assert [event.seq async for event in telling] == [2, 3, 4, 5]


async def test_a_missing_first_record_is_unavailable(bus):
    with pytest.raises(Unavailable, match="no first record"):
        await JobLog(bus, "default", "nobody").first()


async def test_progress_resets_the_count_of_claims_and_an_intent_does_not(bus):
    log, head = await begun(bus)
    attempt = {"step": 1, "attempt": 1, "attempt_id": "a"}

    head = await log.append([e.ModelRequested(**stamp(2), **attempt, provider="p", model="m")], head, attempt=3)
    assert head.attempt == 3
    failed = e.ModelFailed(**stamp(3), **attempt, error={"code": "c", "message": "m"}, retryable=True)
    assert (await log.append([failed], head)).attempt == 0


async def test_only_a_claim_that_was_handed_back_is_uncounted(bus):
    log, head = await begun(bus)

    claimed = e.JobClaimed(**stamp(2), executor="x", epoch=1, owner="7:3", attempt=3)
    head = await log.append([claimed, e.JobHandedBack(**stamp(3), reason="r")], head, attempt=3)

    assert (head.state, head.attempt) == (State.ACTIVE, 2)
    head = await log.append([e.JobHandedBack(**stamp(4))], head._replace(attempt=0))
    assert head.attempt == 0


async def test_large_fields_move_to_the_object_store_and_come_back_whole(bus):
    text = "0123456789" * 200_000
    log, _ = await begun(bus, text)

    raw = await bus.js.get_last_msg("EVENTS", log.subject)
    assert len(raw.data) < MESSAGE_MAX
    claim = orjson.loads(raw.data)["events"][0]["job"]["input"]["$claim"]
    assert claim.startswith("default/j1/") and (raw.headers or {})[h.CLAIMS] == "1"
    assert [event.job.input async for event in log.read()] == [text]
    last = await log.last()
    assert last is not None and last.events[0].job.input == text


async def test_the_same_large_field_is_stored_once(bus):
    text = "0123456789" * 200_000
    await begun(bus, text)
    log = JobLog(bus, "default", "j1")
    head = await log.last()
    assert head is not None

    await log.append([asked(2, text)], head)
    await log.append([asked(3, text)], await log.last())

    objects = await (await bus.js.object_store("PAYLOADS")).list()
    assert len(objects) == 1


async def test_a_large_record_waits_for_room_in_the_object_store(bus, monkeypatch):
    monkeypatch.setattr(journal_log, "FULL_RETRY_S", 0.05)
    objects = (await bus.js.stream_info("OBJ_PAYLOADS")).config
    await bus.js.update_stream(objects.evolve(max_bytes=10_000))
    log, head = await begun(bus)
    check_in, tries = bus.claims.check_in, []

    async def counted(*args):
        tries.append(args)
        return await check_in(*args)

    monkeypatch.setattr(bus.claims, "check_in", counted)
    writing = asyncio.create_task(log.append([asked(2, "0123456789" * 200_000)], head))
    await until(lambda: len(tries) > 2 or writing.done(), why="it was refused more than once")
    await bus.js.update_stream(objects)

    assert (await asyncio.wait_for(writing, 30)).seq == 2
    assert [event.seq async for event in log.read()] == [1, 2]


async def test_a_late_follower_gets_every_event_and_an_end(bus):
    log, head = await begun(bus)
    head = await log.append([asked(2), asked(3)], head)
    await log.append([done(4)], head)

    assert [event.seq async for event in follow(bus, "default", "j1")] == [1, 2, 3, 4]
    assert [event.seq async for event in follow(bus, "default", "j1", after_seq=2)] == [3, 4]
    assert [event.seq async for event in follow(bus, "default", "j1", after_seq=4)] == []


async def test_followers_who_join_anywhere_see_every_event_once_and_in_order(bus):
    log, head = await begun(bus)
    joined = [asyncio.Event() for _ in range(8)]

    async def reader(after: int, joined: asyncio.Event) -> list[int]:
        seen = []
        async for event in follow(bus, "default", "j1", after_seq=after):
            joined.set()
            seen.append(event.seq)
        return seen

    readers = []
    for seq in range(2, 50):
        if seq % 6 == 0:
            readers.append(asyncio.create_task(reader(seq // 6 - 1, joined[len(readers)])))
        head = await log.append([asked(seq)], head)
    await log.append([done(50)], head)

    for after, seen in enumerate(await asyncio.wait_for(asyncio.gather(*readers), 10)):
        assert seen == list(range(after + 1, 51))


async def test_a_reader_slower_than_its_job_is_refilled_from_the_log(bus, monkeypatch):
    monkeypatch.setattr(sys.modules["wayline.journal.follow"], "WAITING_MAX", 3)
    log, head = await begun(bus)
    following = follow(bus, "default", "j1")
    seen = [(await anext(following)).seq]

    for seq in range(2, 40):
        head = await log.append([asked(seq)], head)
    await log.append([done(40)], head)
    seen += [event.seq async for event in following]

    assert seen == list(range(1, 41))


async def test_a_job_without_a_log_is_waited_for(bus):
    async def read() -> list[int]:
        return [event.seq async for event in follow(bus, "default", "j1")]

    reading = asyncio.create_task(read())

    async def subscribed() -> bool:
        return bus.nc._subs and any(sub.subject == "live.default.j1" for sub in bus.nc._subs.values())

    await until(subscribed, why="the follower listens")
    log, head = await begun(bus)
    await log.append([done(2)], head)

    assert await asyncio.wait_for(reading, 30) == [1, 2]


async def test_a_long_log_is_read_in_one_request_and_grows_linearly(bus, monkeypatch):
    log, head = await begun(bus)
    page = "x" * 5_000
    for seq in range(2, 302):
        head = await log.append([asked(seq, page)], head)
    requests = []
    publish = bus.nc.publish

    async def counting(subject, *args, **kwargs):
        requests.append(subject)
        return await publish(subject, *args, **kwargs)

    monkeypatch.setattr(bus.nc, "publish", counting)
    records = await log.records(head.sequence)

    assert len(records) == 301
    assert requests == ["$JS.API.DIRECT.GET.EVENTS"]
    assert (await bus.js.stream_info("EVENTS")).state.bytes < 300 * 5_000 * 1.2
