"""Rules 3, 4, 11, 12 and 18 of the job protocol: what becomes of a ticket."""

from __future__ import annotations

from typing import Any

import pytest

from wayline.chassis import Failpoint
from wayline.contracts import events as e
from wayline.contracts import headers as h
from wayline.contracts.errors import Unavailable
from wayline.contracts.jobs import Cancel, Failure, RunJob
from wayline.executor.hold import signals
from wayline.executor.hold.claim import CLAIMS_MAX
from wayline.journal import JobLog, State, header_fields
from wayline.testkit import until

from ..conftest import ACK_WAIT_S
from ..platform import CLOCK, ONCE, TENANT, FaultPlatform, calls, says
from .scene import ALL, append_elsewhere, head_of, lane_of, running, types, until_held, until_let_go, until_parked
from .wire import Wire, ack, on

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


async def test_rule_3_a_fenced_holder_forgets_its_ticket(platform: FaultPlatform, wire: Wire):
    """An ack from it would delete the ticket its successor lives on, a nak would redeliver it at once.

    Rule 11 too: a delivery that is not above the claimed one is forgotten, and a ticket of an ended job settles it.
    """
    async with running(platform, *ALL) as services:
        await platform.submit_plan("r3", says("said too late", hold="r3"))
        await until_held(platform, "r3")
        head, log = await head_of(platform, "r3"), JobLog(platform.bus, TENANT, "r3")
        ticket = head.owner_ticket
        owner = f"{ticket}:99"
        theirs = append_elsewhere(head, "r3", e.JobClaimed, executor="x", epoch=2, owner=owner, attempt=1)
        head = await log.append([theirs], head, owner=owner, attempt=1, epoch=2)

        platform.holds["r3"].set()
        await until_let_go(platform, services["executor"], wire)

        async def again() -> bool:
            return (await platform.bus.js.consumer_info("RUN", "interactive")).num_redelivered > 0

        await until(again, within=60, why="the ticket comes again")
        assert (await head_of(platform, "r3")).sequence == head.sequence
        assert {payload for sequence, _, payload in wire.acks("RUN") if sequence == ticket} <= {b"+WPI"}

        end = append_elsewhere(head, "r3", e.JobFailed, error=Failure(code="x", message="ended by its new holder"))
        await log.append([end], head)
        await platform.until_quiet()
    assert (ticket, b"+ACK") in {(sequence, payload) for sequence, _, payload in wire.acks("RUN")}


async def test_rule_3_a_fenced_holder_without_the_bus_keeps_its_ticket(
    platform: FaultPlatform, wire: Wire, monkeypatch: pytest.MonkeyPatch
):
    """Rule 13 too: a nak only when the log's last record is still ours, whatever made the holder stop."""
    real = signals.newest

    async def newest(*asked: Any) -> int:
        if asked[1:] == (TENANT, "r3-away") and "r3-away" in platform.holds:
            raise Unavailable("the bus")
        return await real(*asked)

    async with running(platform, *ALL) as services:
        lane = lane_of(services["executor"])
        # Its heartbeat would notice first.
        lane._beat_s = 600
        await platform.submit_plan("r3-away", says("said too late", hold="r3-away"))
        await until_held(platform, "r3-away")
        head, log = await head_of(platform, "r3-away"), JobLog(platform.bus, TENANT, "r3-away")
        ticket, owner = head.owner_ticket, f"{head.owner_ticket}:99"
        theirs = append_elsewhere(head, "r3-away", e.JobClaimed, executor="x", epoch=2, owner=owner, attempt=1)
        head = await log.append([theirs], head, owner=owner, attempt=1, epoch=2)

        monkeypatch.setattr(signals, "newest", newest)
        await platform.signal("r3-away", Cancel(reason="makes the holder look"))
        # A call that is paid for goes on meanwhile; after it the holder looks again.
        platform.holds["r3-away"].set()
        await until_let_go(platform, services["executor"], wire)
        monkeypatch.setattr(signals, "newest", real)
        assert {payload[:4] for sequence, _, payload in wire.acks("RUN") if sequence == ticket} <= {b"+WPI"}

        end = append_elsewhere(head, "r3-away", e.JobFailed, error=Failure(code="x", message="ended elsewhere"))
        await log.append([end], head)
        await platform.until_quiet()


async def test_rule_4_no_ticket_is_acked_while_its_job_lives(platform: FaultPlatform, wire: Wire):
    """The ack comes after the record that ends or parks the job; without it a crash in between loses the job."""
    await platform.forget_outcome("r4-park", 1, "1")
    before = (await platform.bus.js.stream_info("RUN")).state.last_seq
    async with running(platform, *ALL):
        await platform.submit_plan("r4-end", calls(CLOCK), says("done"))
        await platform.submit_plan("r4-park", calls(ONCE), says("done"))
        await platform.submit_plan("r4-cancel", says("never all of it", hold="r4"))
        await until_held(platform, "r4")
        await platform.signal("r4-cancel", Cancel(reason="enough"))
        await platform.until_ended("r4-end", "r4-park", "r4-cancel")
        await platform.until_quiet()

    living: dict[int, str] = {}
    acked = 0
    for message in wire.heard:
        if message.subject.startswith(f"events.{TENANT}.r4-"):
            headers = header_fields(message.headers or {})
            owner = headers["owner"]
            if owner:
                living[int(owner.partition(":")[0])] = headers["state"]
        # A redelivered ticket of a rule before may still be answered.
        elif ack("RUN")(message) and (ticket := int(message.subject.split(".")[5])) > before:
            acked += 1
            assert living.get(ticket) in {"ended", "parked"}
    assert acked == 4


async def test_rule_11_a_ticket_of_an_older_record_begins_nothing(platform: FaultPlatform, wire: Wire):
    """A ticket that was queued before the job was claimed, parked and woken by others is acked and forgotten."""
    await platform.forget_outcome("r11", 1, "1")
    async with running(platform, *ALL):
        await platform.submit_plan("r11", calls(ONCE), says("done"))
        head = await until_parked(platform, "r11")
        first = int((await platform.records("r11"))[0].headers["Nats-Sequence"])  # type: ignore[index]
        for at in (first, head.sequence - 1):
            await platform.bus.publish(RunJob(tenant=TENANT, job="r11", at=at), msg_id=f"stale-{at}")

        async def acked() -> bool:
            return (await platform.bus.js.stream_info("RUN")).state.messages == 0

        await until(acked, within=60, why="the stale tickets are gone")
        assert (await head_of(platform, "r11")).sequence == head.sequence
        await platform.until_ended("r11")
        await platform.until_quiet()


async def test_rule_12_a_dead_executors_given_up_job_is_dead_lettered(platform: FaultPlatform):
    """The record is in, the dead letter is not: whoever finds the job ended puts its ticket aside."""
    async with running(platform, "router"):
        await platform.submit_plan("r12", says("never"))

        async def queued() -> bool:
            return (await platform.bus.js.stream_info("RUN")).state.messages == 1

        await until(queued, within=60, why="its ticket is there")
        ticket = (await platform.bus.js.stream_info("RUN")).state.first_seq
        head, owner = await head_of(platform, "r12"), f"{ticket}:0"
        claim = append_elsewhere(head, "r12", e.JobClaimed, executor="x", epoch=1, owner=owner, attempt=CLAIMS_MAX)
        await JobLog(platform.bus, TENANT, "r12").append([claim], head, owner=owner, attempt=CLAIMS_MAX, epoch=1)
    doomed = await platform.fleet.start("executor", Failpoint.EXECUTOR_CLAIM_AFTER)
    await platform.until_dead(doomed)
    assert await platform.dead_letters() == []

    async with running(platform, *ALL):
        await platform.until_quiet()
    (letter,) = await platform.dead_letters()
    assert (letter[h.DEAD_CODE], letter[h.DEAD_STREAM]) == ("crash_loop", "RUN")
    assert (await types(platform, "r12"))[-2:] == ["job.claimed", "job.failed"]
    await platform.bus.js.purge_stream("DEAD")


async def test_rule_18_a_job_is_settled_before_its_ticket_is_acked(platform: FaultPlatform, wire: Wire):
    """While the router is away the ticket stays: whoever gets it next settles from the recorded cost."""
    async with running(platform, "router"):
        await platform.submit_plan("r18", says("done"))
        await until(lambda: wire.find(ack("SUBMIT")), within=60, why="the submission is acked")
    async with running(platform, "executor", "tool_registry"):
        await until(lambda: wire.find(on("budgets.settle.")), within=60, why="the job has ended and is to be settled")
        assert (await head_of(platform, "r18")).state is State.ENDED
        assert (await platform.bus.js.stream_info("RUN")).state.messages == 1
        async with running(platform, "router"):
            await platform.until_quiet()
    settle = wire.find(on("budgets.settle."))
    acked = wire.find(ack("RUN"))
    assert settle is not None and acked is not None and settle < acked


async def test_rule_18_any_ticket_that_finds_the_job_ended_settles_it(platform: FaultPlatform):
    async with running(platform, *ALL):
        await platform.submit_plan("r18-late", says("done"))
        await platform.until_ended("r18-late")
        await platform.until_quiet()
        await platform.sql("UPDATE router.reservations SET state = 'reserved' WHERE job_id = 'r18-late'")
        await platform.bus.publish(RunJob(tenant=TENANT, job="r18-late", at=1), msg_id="a-late-ticket")
        await platform.until_quiet()


async def test_rule_18_a_ticket_waiting_for_the_router_takes_one_slot(platform: FaultPlatform, wire: Wire):
    """Settling an ended job may take as long as the router is away: the ticket is not redelivered into every slot."""
    async with running(platform, *ALL):
        await platform.submit_plan("r18-slots", says("done"))
        await platform.until_ended("r18-slots")
        await platform.until_quiet()
    js = platform.bus.js
    last = (await js.stream_info("RUN")).state.last_seq
    await platform.set_ack_wait(3 * ACK_WAIT_S)
    try:
        await platform.bus.publish(RunJob(tenant=TENANT, job="r18-slots", at=1), msg_id="r18-slots-again")
        async with running(platform, "executor") as services:
            lane = lane_of(services["executor"])

            def kept() -> bool:
                assert lane._puller.running <= 1, "the same ticket is in hand more than once"
                return [payload for sequence, _, payload in wire.acks("RUN") if sequence > last] == [b"+WPI"] * 4

            # One each second: three are as long as the ack wait.
            await until(kept, within=60, why="it says four times that it is at work")
            assert (await js.consumer_info("RUN", "interactive")).num_redelivered == 0
            async with running(platform, "router"):
                await platform.until_quiet()
    finally:
        await platform.set_ack_wait(ACK_WAIT_S)
