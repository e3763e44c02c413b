"""The rules of the job protocol that have a counter-example when they are left out: one named test each.

Services run in this process, and what anybody publishes is heard in the order in which the server got it. Rule 3 is
also held by a frozen process (`test_executors_that_stop.py`), rules 5 and 18 by outages and kills (`test_outages.py`,
`test_executor_failpoints.py`), rule 23 by killed registries (`test_service_failpoints.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

import orjson
import pytest
import pytest_asyncio
from nats.aio.msg import Msg

from wayline.chassis import BusSettings, Failpoint, Service, stopped
from wayline.contracts import events as e
from wayline.contracts import headers as h
from wayline.contracts.errors import Full, Unavailable
from wayline.contracts.jobs import Answer, Cancel, Failure, RunJob
from wayline.executor import signals
from wayline.executor.claim import CLAIMS_MAX
from wayline.executor.lane import Lane
from wayline.executor.pen import Pen
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.journal import Head, JobLog, State, read_record, said_in
from wayline.journal import log as journal_log
from wayline.router import app as router_app
from wayline.router.desk import Desk
from wayline.testkit import until
from wayline.testkit.guarded import ADMIN
from wayline.tool_registry.settings import Settings as RegistrySettings

from .conftest import ACK_WAIT_S, LEASE_S, MakeWorld
from .world import CLOCK, ONCE, TENANT, World, calls, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

ALL = ("router", "tool_registry", "executor")
HEARD = tuple("$JS.ACK.> $JS.API.> events.> jobs.> signals.> later.> budgets.> tools.> marker.>".split())


@dataclass
class Wire:
    """Everything that was published, in order."""

    heard: list[Msg] = field(default_factory=list)

    def find(self, what: Callable[[Msg], bool], after: int = -1) -> int | None:
        """Where the first such message is, after a place."""
        return next((n for n in range(after + 1, len(self.heard)) if what(self.heard[n])), None)

    def order(self, *whats: Callable[[Msg], bool]) -> list[int | None]:
        """Where the first of each is."""
        return [self.find(what) for what in whats]

    def acks(self, stream: str) -> list[tuple[int, int, bytes]]:
        """What was said of the messages of a stream: stream sequence, delivery, and `+ACK`, `-NAK`, `+WPI`."""
        told = [message for message in self.heard if message.subject.startswith(f"$JS.ACK.{stream}.")]
        tokens = [message.subject.split(".") for message in told]
        return [(int(t[5]), int(t[4]), m.data.split(b" ")[0] or b"+ACK") for t, m in zip(tokens, told, strict=True)]


def record(job_id: str, kind: str) -> Callable[[Msg], bool]:
    """A record of a job that holds an event of this type."""
    return lambda m: m.subject == f"events.{TENANT}.{job_id}" and kind in [event.type for event in read_record(m.data)]


def on(prefix: str, **body: Any) -> Callable[[Msg], bool]:
    """A message on a subject, with these fields in its body."""
    return lambda m: m.subject.startswith(prefix) and (not body or body.items() <= orjson.loads(m.data).items())


def ack(stream: str) -> Callable[[Msg], bool]:
    # An empty body is an ack too, and the one our client sends.
    return lambda m: m.subject.startswith(f"$JS.ACK.{stream}.") and m.data in (b"", b"+ACK")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(make_world: MakeWorld) -> World:
    return await make_world()


@pytest_asyncio.fixture(loop_scope="module")
async def wire(world: World) -> AsyncIterator[Wire]:
    wire, everything = Wire(), asyncio.Queue[Msg]()

    async def hear() -> None:
        while True:
            wire.heard.append(await everything.get())

    # Not `>`: an ear for every inbox would make pull requests of services that are gone look alive.
    subscriptions = [await world.bus.nc.subscribe(subject) for subject in HEARD]
    for subscription in subscriptions:
        # One queue for all of them keeps the order in which the server sent what it sent.
        subscription._pending_queue = everything
    await world.bus.nc.flush()
    hearing = asyncio.create_task(hear())
    yield wire
    for subscription in subscriptions:
        await subscription.unsubscribe()
    await stopped(hearing)


@asynccontextmanager
async def running(world: World, *names: str) -> AsyncIterator[dict[str, Service]]:
    """Services in this process."""
    settings = {
        "executor": ExecutorSettings(chat_base_url=world.chat.url, tool_wait_s=2),
        "tool_registry": RegistrySettings.model_validate(
            {"servers": [world.effects.settings()], "lease_s": LEASE_S, "answer_within_s": 0.5}
        ),
    }
    services: dict[str, Service] = {}
    try:
        for name in names:
            dsn = world.fleet.env[name].get("WAYLINE_POSTGRES_DSN")
            # The tests speak through the services' own connections, of what no service may.
            seed = world.fleet.seeds[ADMIN]
            shared = BusSettings(nats_url=world.nats.url, nats_seed=seed, postgres_dsn=dsn, drain_grace_s=5)
            build = import_module(f"wayline.{name}.app").build
            services[name] = await build(settings.get(name), bus_settings=shared)
            await services[name].start()
        yield services
    finally:
        for service in services.values():
            await service.stop(0.1)


async def until_held(world: World, name: str) -> None:
    await until(lambda: name in world.holds, within=20, why=f"the model call {name} is under way")


async def until_let_go(executor: Service, wire: Wire) -> None:
    """Wait until an executor has nothing in hand, and all that it said is heard."""
    lane = executor.parts[0]
    assert isinstance(lane, Lane)
    await until(lambda: not lane._held and not lane._puller.running, within=20, why="the holder has let go")
    marker = f"marker.{len(wire.heard)}"
    await executor.bus.nc.publish(marker, b"")
    await until(lambda: wire.find(on(marker)), within=20, why="everything said is heard")


async def head_of(world: World, job_id: str) -> Head:
    head = await JobLog(world.bus, TENANT, job_id).last()
    assert head is not None
    return head


async def until_parked(world: World, job_id: str) -> Head:
    async def parked() -> bool:
        head = await JobLog(world.bus, TENANT, job_id).last()
        return head is not None and head.state is State.PARKED

    await until(parked, within=20, why=f"{job_id} is parked")
    return await head_of(world, job_id)


async def types(world: World, job_id: str) -> list[str]:
    return [event.type for message in await world.records(job_id) for event in read_record(message.data)]


def append_elsewhere(head: Head, job_id: str, kind: type[e.Event], **payload: Any) -> e.Event:
    """An event that another process would write after this head."""
    trace = e.SpanRef(trace_id="0" * 31 + "1", span_id="0" * 15 + "1")
    return kind(job_id=job_id, seq=head.seq + 1, at=datetime.now(UTC), trace=trace, **payload)


async def test_rule_1_a_replica_that_is_behind_misleads_nobody(world: World, monkeypatch: pytest.MonkeyPatch):
    """A direct get may know less than the leader: reading stops only where a leader read has said that the end is."""
    real, behind = journal_log._batch, Counter[tuple[Any, str]]()

    async def lagging(bus: Any, stream: str, request: dict[str, Any]) -> Any:
        # By task: whoever is misled does not get away with another try.
        reader = (asyncio.current_task(), request["next_by_subj"])
        behind[reader] += 1
        if bus is not world.bus and behind[reader] <= 2:
            return journal_log._Got([], 0)
        return await real(bus, stream, request)

    await world.forget_outcome("r1", 1, "1")
    async with running(world, *ALL):
        await world.submit("r1", calls(ONCE), says("done"))
        await until_parked(world, "r1")
        monkeypatch.setattr(journal_log, "_batch", lagging)
        await world.signal("r1", Answer(decision_id="1-1", outcome="succeeded"))
        await world.until_ended("r1")
    assert (await world.job("r1")).status == "completed"
    assert {subject for (_, subject), n in behind.items() if n > 2} >= {"signals.default.r1", "events.default.r1"}


async def test_rule_1_every_decision_rests_on_a_leader_read(world: World, wire: Wire):
    """No last record or last signal is ever asked of a replica, and no bulk read comes before a leader read."""
    await world.forget_outcome("r1-wire", 1, "1")
    async with running(world, *ALL):
        await world.submit("r1-wire", calls(ONCE), says("done"))
        await until_parked(world, "r1-wire")
        mark = len(wire.heard)
        await world.signal("r1-wire", Answer(decision_id="1-1", outcome="succeeded"))
        claim = record("r1-wire", "job.claimed")
        await until(lambda: wire.find(claim, after=mark), within=20, why="it is claimed again")

    direct = [m for m in wire.heard if m.subject.startswith("$JS.API.DIRECT.GET.")]
    assert [m for m in direct if b"last_by_subj" in m.data or b"multi_last" in m.data] == []
    told = wire.find(on("jobs.run."), after=mark)
    claimed = wire.find(claim, after=mark)
    assert told is not None and claimed is not None
    for subject in ("events.default.r1-wire", "signals.default.r1-wire"):
        asked = wire.find(on("$JS.API.STREAM.MSG.GET.", last_by_subj=subject), after=told)
        assert asked is not None and asked < claimed, subject


async def test_rule_3_a_fenced_holder_forgets_its_ticket(world: World, wire: Wire):
    """An ack from it would delete the ticket its successor lives on, a nak would redeliver it at once.

    Rule 11 too: a delivery that is not above the claimed one is forgotten, and a ticket of an ended job settles it.
    """
    async with running(world, *ALL) as services:
        await world.submit("r3", says("said too late", hold="r3"))
        await until_held(world, "r3")
        head, log = await head_of(world, "r3"), JobLog(world.bus, TENANT, "r3")
        ticket = head.owner_ticket
        owner = f"{ticket}:99"
        theirs = append_elsewhere(head, "r3", e.JobClaimed, executor="x", epoch=2, owner=owner, attempt=1)
        head = await log.append([theirs], head, owner=owner, attempt=1, epoch=2)

        world.holds["r3"].set()
        await until_let_go(services["executor"], wire)

        async def again() -> bool:
            return (await world.bus.js.consumer_info("RUN", "interactive")).num_redelivered > 0

        await until(again, within=20, why="the ticket comes again")
        assert (await head_of(world, "r3")).sequence == head.sequence
        assert {said for sequence, _, said in wire.acks("RUN") if sequence == ticket} <= {b"+WPI"}

        end = append_elsewhere(head, "r3", e.JobFailed, error=Failure(code="x", message="ended by its new holder"))
        await log.append([end], head)
        await world.until_quiet()
    assert (ticket, b"+ACK") in {(sequence, said) for sequence, _, said in wire.acks("RUN")}


async def test_rule_3_a_fenced_holder_that_cannot_reach_a_stream_does_not_give_its_ticket_back(
    world: World, wire: Wire, monkeypatch: pytest.MonkeyPatch
):
    """Rule 13 too: a nak only when the log's last record is still ours, whatever made the holder stop."""
    real = signals.newest

    async def newest(*asked: Any) -> int:
        if asked[1:] == (TENANT, "r3-away") and "r3-away" in world.holds:
            raise Unavailable("the bus")
        return await real(*asked)

    async with running(world, *ALL) as services:
        lane = services["executor"].parts[0]
        # Its heartbeat would notice first.
        lane._beat_s = 600
        await world.submit("r3-away", says("said too late", hold="r3-away"))
        await until_held(world, "r3-away")
        head, log = await head_of(world, "r3-away"), JobLog(world.bus, TENANT, "r3-away")
        ticket, owner = head.owner_ticket, f"{head.owner_ticket}:99"
        theirs = append_elsewhere(head, "r3-away", e.JobClaimed, executor="x", epoch=2, owner=owner, attempt=1)
        head = await log.append([theirs], head, owner=owner, attempt=1, epoch=2)

        monkeypatch.setattr(signals, "newest", newest)
        await world.signal("r3-away", Cancel(reason="makes the holder look"))
        # A call that is paid for goes on meanwhile; after it the holder looks again.
        world.holds["r3-away"].set()
        await until_let_go(services["executor"], wire)
        monkeypatch.setattr(signals, "newest", real)
        assert {said[:4] for sequence, _, said in wire.acks("RUN") if sequence == ticket} <= {b"+WPI"}

        end = append_elsewhere(head, "r3-away", e.JobFailed, error=Failure(code="x", message="ended elsewhere"))
        await log.append([end], head)
        await world.until_quiet()


async def test_rule_4_no_ticket_is_acked_while_the_job_lives_on_it(world: World, wire: Wire):
    """The ack comes after the record that ends or parks the job; without it a crash in between loses the job."""
    await world.forget_outcome("r4-park", 1, "1")
    before = (await world.bus.js.stream_info("RUN")).state.last_seq
    async with running(world, *ALL):
        await world.submit("r4-end", calls(CLOCK), says("done"))
        await world.submit("r4-park", calls(ONCE), says("done"))
        await world.submit("r4-cancel", says("never all of it", hold="r4"))
        await until_held(world, "r4")
        await world.signal("r4-cancel", Cancel(reason="enough"))
        await world.until_ended("r4-end", "r4-park", "r4-cancel")
        await world.until_quiet()

    living: dict[int, str] = {}
    acked = 0
    for message in wire.heard:
        if message.subject.startswith(f"events.{TENANT}.r4-"):
            said = said_in(message.headers or {})
            owner = said["owner"]
            if owner:
                living[int(owner.partition(":")[0])] = said["state"]
        # A redelivered ticket of a rule before may still be answered.
        elif ack("RUN")(message) and (ticket := int(message.subject.split(".")[5])) > before:
            acked += 1
            assert living.get(ticket) in {"ended", "parked"}
    assert acked == 4


async def test_rule_5_no_submission_ticket_or_signal_runs_out_of_deliveries(world: World):
    """An outage would use them up: a message past the limit is a job that is stuck for ever."""
    for stream, consumer in (("SUBMIT", "router"), ("RUN", "interactive"), ("RUN", "batch"), ("SIGNALS", "router")):
        config = (await world.bus.js.consumer_info(stream, consumer)).config
        assert config.max_deliver == -1, (stream, consumer)


async def test_rule_5_a_dependency_that_is_away_is_waited_for_and_costs_no_delivery(
    world: World, wire: Wire, monkeypatch: pytest.MonkeyPatch
):
    away, real = asyncio.Event(), Desk.admit

    async def admit(desk: Desk, *given: Any) -> Any:
        if not away.is_set():
            raise Unavailable("Postgres", after_s=0.05)
        return await real(desk, *given)

    monkeypatch.setattr(Desk, "admit", admit)
    monkeypatch.setattr(router_app, "SUBMIT_ROUTER", replace(router_app.SUBMIT_ROUTER, ack_wait_s=ACK_WAIT_S))
    async with running(world, *ALL):
        await world.submit("r5", says("done"))
        # Six thirds: twice as long as the server would have waited.
        waits = lambda: len([said for _, _, said in wire.acks("SUBMIT") if said == b"+WPI"])  # noqa: E731
        await until(lambda: waits() >= 6, within=20, why="the router says that it is still at it")
        away.set()
        await world.until_ended("r5")
        await world.until_quiet()
    assert {delivery for _, delivery, _ in wire.acks("SUBMIT")} == {1}


async def test_rule_6_a_full_front_door_does_not_keep_the_router_from_queueing_tickets(world: World):
    """In one shared full stream no ticket can be published, so no submission acked, so the stream stays full."""
    js = world.bus.js
    config = (await js.stream_info("SUBMIT")).config
    await js.update_stream(config.evolve(max_msgs=2, max_msgs_per_subject=2))
    try:
        jobs = [await world.submit(f"r6-{n}", says("done")) for n in range(2)]
        with pytest.raises(Full):
            await world.submit("r6-refused", says("done"))
        async with running(world, *ALL):
            await world.until_ended(*jobs)
            await world.until_quiet()
            await world.submit("r6-refused", says("done"))
            await world.until_ended("r6-refused")
            await world.until_quiet()
    finally:
        await js.update_stream(config)


async def test_rule_6_a_full_ticket_queue_makes_submissions_wait_and_loses_none(world: World):
    """The accepted job keeps its place in SUBMIT until its ticket is in; it is no dead letter."""
    js = world.bus.js
    config = (await js.stream_info("RUN")).config
    await js.update_stream(config.evolve(max_msgs=1))
    try:
        async with running(world, "router"):
            jobs = [await world.submit(f"r6-run-{n}", says("done")) for n in range(3)]

            async def all_begun() -> bool:
                return all([await world.records(job_id) for job_id in jobs])

            await until(all_begun, within=20, why="every job has its log")
            async with running(world, "executor", "tool_registry"):
                await world.until_ended(*jobs)
                await world.until_quiet()
        assert await world.dead_letters() == []
    finally:
        await js.update_stream(config)


async def test_rule_10_a_router_that_slept_reserves_nothing_again_and_begins_no_second_log(
    world: World, wire: Wire, monkeypatch: pytest.MonkeyPatch
):
    """The row is never deleted, so that a reservation after the settlement changes nothing; the first record
    is expected at 0."""
    async with running(world, *ALL):
        await world.submit("r10", says("done"))
        await world.until_ended("r10")
        await world.until_quiet()
        before, real = await world.records("r10"), JobLog.last
        blind = {"r10"}

        async def last(log: JobLog) -> Head | None:
            # What a router saw that read the log before there was one, and slept until now.
            if log.job_id in blind:
                blind.discard(log.job_id)
                return None
            return await real(log)

        monkeypatch.setattr(JobLog, "last", last)
        mark = len(wire.heard)
        await world.bus.js.publish(
            f"jobs.submit.{TENANT}", orjson.dumps(orjson.loads(before_submission(wire, "r10"))), headers={}
        )
        await until(lambda: wire.find(ack("SUBMIT"), after=mark), within=20, why="the second submission is acked")
        await world.until_quiet()

    assert not blind
    first = read_record(before[0].data)
    assert [event.type for event in first] == ["job.submitted", "job.routed"]
    assert before[0].headers is not None and len(await world.records("r10")) == len(before)
    assert wire.find(on("jobs.run."), after=mark) is None
    rows = await world.sql("SELECT state FROM router.reservations WHERE job_id = 'r10'")
    assert [row["state"] for row in rows] == ["settled"]


def before_submission(wire: Wire, job_id: str) -> bytes:
    """The body with which a job was submitted."""
    place = wire.find(on("jobs.submit.", job_id=job_id))
    assert place is not None
    return wire.heard[place].data


async def test_rule_10_the_log_exists_before_its_ticket_and_the_ticket_before_the_ack(world: World, wire: Wire):
    async with running(world, "router"):
        await world.submit("r10-order", says("done"))
        await until(lambda: wire.find(ack("SUBMIT")), within=20, why="the submission is acked")
    order = wire.order(record("r10-order", "job.submitted"), on("jobs.run.", job="r10-order"), ack("SUBMIT"))
    assert None not in order and order == sorted(order)  # type: ignore[type-var]
    async with running(world, *ALL):
        await world.until_ended("r10-order")
        await world.until_quiet()


async def test_rule_11_a_ticket_from_another_record_than_the_last_begins_nothing(world: World, wire: Wire):
    """A ticket that was queued before the job was claimed, parked and woken by others is acked and forgotten."""
    await world.forget_outcome("r11", 1, "1")
    async with running(world, *ALL):
        await world.submit("r11", calls(ONCE), says("done"))
        head = await until_parked(world, "r11")
        first = int((await world.records("r11"))[0].headers["Nats-Sequence"])  # type: ignore[index]
        for at in (first, head.sequence - 1):
            await world.bus.publish(RunJob(tenant=TENANT, job="r11", at=at), msg_id=f"stale-{at}")

        async def acked() -> bool:
            return (await world.bus.js.stream_info("RUN")).state.messages == 0

        await until(acked, within=20, why="the stale tickets are gone")
        assert (await head_of(world, "r11")).sequence == head.sequence
        await world.until_ended("r11")
        await world.until_quiet()


async def test_rule_12_a_job_that_was_given_up_is_put_aside_though_its_executor_died_right_after(world: World):
    """The record is in, the dead letter is not: whoever finds the job ended puts its ticket aside."""
    async with running(world, "router"):
        await world.submit("r12", says("never"))

        async def queued() -> bool:
            return (await world.bus.js.stream_info("RUN")).state.messages == 1

        await until(queued, within=20, why="its ticket is there")
        ticket = (await world.bus.js.stream_info("RUN")).state.first_seq
        head, owner = await head_of(world, "r12"), f"{ticket}:0"
        claim = append_elsewhere(head, "r12", e.JobClaimed, executor="x", epoch=1, owner=owner, attempt=CLAIMS_MAX)
        await JobLog(world.bus, TENANT, "r12").append([claim], head, owner=owner, attempt=CLAIMS_MAX, epoch=1)
    doomed = await world.fleet.start("executor", Failpoint.EXECUTOR_CLAIM_AFTER)
    await world.until_dead(doomed)
    assert await world.dead_letters() == []

    async with running(world, *ALL):
        await world.until_quiet()
    (letter,) = await world.dead_letters()
    assert (letter[h.DEAD_CODE], letter[h.DEAD_STREAM]) == ("crash_loop", "RUN")
    assert (await types(world, "r12"))[-2:] == ["job.claimed", "job.failed"]
    await world.bus.js.purge_stream("DEAD")


async def test_rule_14_a_cancel_is_heard_while_the_registry_is_away(world: World):
    async with running(world, "router", "executor") as services:
        await world.submit("r14", says("never"))
        held = services["executor"].parts[0]._by_job
        await until(lambda: (TENANT, "r14") in held, within=20, why="it is held")
        await world.signal("r14", Cancel(reason="enough"))
        await world.until_ended("r14", within=20)
        await world.until_quiet()
    assert (await world.job("r14")).status == "cancelled"


async def test_rule_15_everything_a_wait_needs_exists_before_the_job_is_parked(world: World, wire: Wire):
    """The question, then its expiry, then the park: after a crash in between nobody waits for ever."""
    await world.forget_outcome("r15", 1, "1")
    async with running(world, *ALL):
        await world.submit("r15", calls(ONCE), says("done"))
        await until_parked(world, "r15")
        await world.until_ended("r15")
        await world.until_quiet()
    order = wire.order(record("r15", "tool.unknown"), on("later.default.r15."), record("r15", "job.parked"))
    assert None not in order and order == sorted(order) and len(set(order)) == 3  # type: ignore[type-var]


async def test_rule_16_a_signal_that_slips_in_before_the_park_wakes_the_job(
    world: World, wire: Wire, monkeypatch: pytest.MonkeyPatch
):
    """The router saw an active job and let the signal go: only the parker can find it, by looking once more.

    And it never resumes by itself: the next claim lives on another ticket.
    """
    real = Pen.append
    slipped: list[str] = []

    async def append(pen: Pen, *points: Any) -> None:
        if pen._noted and pen._noted[-1].type == "job.parked" and not slipped:
            slipped.append(pen.job.job_id)
            await world.signal("r16", Answer(decision_id="1-1", outcome="succeeded"))

            async def let_go() -> bool:
                info = await world.bus.js.consumer_info("SIGNALS", "router")
                return info.num_pending == 0 and info.num_ack_pending == 0

            await until(let_go, within=20, why="the router has let the signal go")
        await real(pen, *points)

    monkeypatch.setattr(Pen, "append", append)
    await world.forget_outcome("r16", 1, "1")
    async with running(world, *ALL):
        await world.submit("r16", calls(ONCE), says("done"))
        # Nobody else answers here: a job that stays parked would wait for ever.
        await until(lambda: wire.find(record("r16", "job.completed")), within=20, why="the job went on")
        await world.until_quiet()
    assert slipped == ["r16"]
    claims = [
        event
        for message in await world.records("r16")
        for event in read_record(message.data)
        if isinstance(event, e.JobClaimed)
    ]
    assert len({claim.owner.partition(":")[0] for claim in claims}) == len(claims) == 2


async def test_rule_18_a_job_is_settled_before_its_ticket_is_acked(world: World, wire: Wire):
    """While the router is away the ticket stays: whoever gets it next settles from the recorded cost."""
    async with running(world, "router"):
        await world.submit("r18", says("done"))
        await until(lambda: wire.find(ack("SUBMIT")), within=20, why="the submission is acked")
    async with running(world, "executor", "tool_registry"):
        await until(lambda: wire.find(on("budgets.settle.")), within=20, why="the job has ended and is to be settled")
        assert (await head_of(world, "r18")).state is State.ENDED
        assert (await world.bus.js.stream_info("RUN")).state.messages == 1
        async with running(world, "router"):
            await world.until_quiet()
    settle = wire.find(on("budgets.settle."))
    acked = wire.find(ack("RUN"))
    assert settle is not None and acked is not None and settle < acked


async def test_rule_18_any_ticket_that_finds_the_job_ended_settles_it(world: World):
    async with running(world, *ALL):
        await world.submit("r18-late", says("done"))
        await world.until_ended("r18-late")
        await world.until_quiet()
        await world.sql("UPDATE router.reservations SET state = 'reserved' WHERE job_id = 'r18-late'")
        await world.bus.publish(RunJob(tenant=TENANT, job="r18-late", at=1), msg_id="a-late-ticket")
        await world.until_quiet()


async def test_rule_18_a_ticket_that_waits_for_the_router_is_kept_and_takes_one_slot(world: World):
    """Settling an ended job may take as long as the router is away: the ticket is not redelivered into every slot."""
    async with running(world, *ALL):
        await world.submit("r18-slots", says("done"))
        await world.until_ended("r18-slots")
        await world.until_quiet()
    await world.bus.publish(RunJob(tenant=TENANT, job="r18-slots", at=1), msg_id="r18-slots-again")
    async with running(world, "executor") as services:
        lane, js = services["executor"].parts[0], world.bus.js
        begun = time.monotonic()

        async def long_enough() -> bool:
            assert lane._puller.running <= 1, "the same ticket is in hand more than once"
            return time.monotonic() - begun > 4 * ACK_WAIT_S

        await until(long_enough, within=20, why="four times the ack wait is over")
        assert (await js.consumer_info("RUN", "interactive")).num_redelivered == 0
        async with running(world, "router"):
            await world.until_quiet()


async def test_rule_25_a_submission_that_kills_every_router_ends_as_undeliverable(world: World):
    """Twenty deliveries without an end: whoever handles it dies, and everybody else's jobs with it."""
    deaths = 21
    await world.submit("r25", says("never"))
    pulled = await world.bus.js.pull_subscribe_bind(consumer="router", stream="SUBMIT")
    for _ in range(deaths):
        (message,) = await pulled.fetch(1, timeout=10)
        await message.nak()
    async with running(world, *ALL):
        await world.until_ended("r25")
        await world.until_quiet()
    assert await types(world, "r25") == ["job.submitted", "job.failed"]
    error = (await world.job("r25")).error
    assert error is not None and error.code == "undeliverable"
    (letter,) = await world.dead_letters()
    assert (letter[h.DEAD_CODE], letter[h.DEAD_STREAM]) == ("undeliverable", "SUBMIT")
    await world.bus.js.purge_stream("DEAD")


async def test_rule_22_the_intent_is_in_the_log_before_the_tool_is_asked(world: World, wire: Wire):
    async with running(world, *ALL):
        await world.submit("r22", calls(ONCE), says("done"))
        await world.until_ended("r22")
        await world.until_quiet()
    order = wire.order(record("r22", "tool.requested"), on("tools.call."), record("r22", "tool.completed"))
    assert None not in order and order == sorted(order)  # type: ignore[type-var]


async def test_rule_23_a_key_that_nobody_finished_is_never_executed_again_where_once_is_meant(world: World):
    """Started, its lease dead: the outcome is unknown, a human decides, and the tool is not called."""
    key = await world.forget_outcome("r23", 1, "1")
    await world.sql("UPDATE tools.calls SET state = 'started', ended_at = NULL WHERE key = $1", key)
    async with running(world, *ALL):
        await world.submit("r23", calls(ONCE), says("done"))
        head = await until_parked(world, "r23")
        assert head.values[-1]["waiting"]["why"] == "needs_decision"
        await world.until_ended("r23")
        await world.until_quiet()
    assert world.effects.count("pay_once", key) == 0
