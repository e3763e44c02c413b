"""A handler on a work queue: acked when it is done, put aside when it never will be, kept while it cannot be."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from wayline.chassis import Bus, BusSettings, Service, Work
from wayline.chassis.connection.dead_letters import BODY_MAX_BYTES
from wayline.chassis.declare import declare
from wayline.chassis.handling.worker import ATTEMPTS_MAX, BEGUN_MAX
from wayline.chassis.stream_limits import Limits
from wayline.chassis.topology import SUBMISSION_MAX_BYTES, SUBMIT_ROUTER, Consumer
from wayline.contracts.errors import Deferred, Reject, Retry
from wayline.contracts.jobs import RunJob, SubmitJob
from wayline.telemetry import BusExporter, Telemetry
from wayline.testkit import until
from wayline.testkit.walks import cases

ACK_WAIT_S = 1.0
Bind = Callable[..., Any]


@pytest.fixture
async def server(nats_factory):
    return await nats_factory()


@pytest.fixture
async def bus(server) -> AsyncIterator[Bus]:
    bus = await Bus.connect(BusSettings(nats_url=server.url), service="test", exit_when_closed=False)
    async for _ in declare(bus.js, Limits()):
        pass
    yield bus
    await bus.close()


@pytest.fixture
async def bind(server) -> AsyncIterator[Bind]:
    """Start a service with one handler; returns it."""
    started: list[Service] = []

    async def bind(handle, consumer: Consumer = SUBMIT_ROUTER, slots: int = 8, **more: Any) -> Service:
        settings = BusSettings(nats_url=server.url)
        bus = await Bus.connect(settings, service="router", exit_when_closed=False)
        exporter = BusExporter("router")
        work = Work(consumer, SubmitJob, handle, slots=slots, **more)
        service = Service("router", settings, bus, Telemetry("router", exporter), exporter, work=[work])
        await service.start()
        started.append(service)
        return service

    yield bind
    for service in started:
        await service.stop(0.1)


class Noting:
    """A handler that notes the jobs it is given; a held one ends none before it may go on."""

    def __init__(self, *, held: bool = False) -> None:
        self.inputs: list[str] = []
        self.go_on = asyncio.Event()
        if not held:
            self.go_on.set()

    async def __call__(self, job, _) -> None:
        self.inputs.append(job.input)
        await self.go_on.wait()


class AwayFor(Noting):
    """A handler that has to wait for something with the jobs of one tenant, until it may go on."""

    def __init__(self, tenant: str) -> None:
        super().__init__(held=True)
        self._tenant = tenant

    async def __call__(self, job, _) -> None:
        if job.tenant == self._tenant and not self.go_on.is_set():
            raise Retry("retrieval is away", after_s=0.05)
        self.inputs.append(job.input)


async def refuse(job, _):
    raise Reject("too wild", code="wild")


async def never_reached(job, _):
    raise AssertionError("never reached")


async def submit(bus: Bus, name: str) -> None:
    await bus.publish(SubmitJob(tenant="default", agent="a", input=name), msg_id=name)


async def hurry(bus: Bus) -> None:
    """Have the server wait no longer than this for a sign of life."""
    config = (await bus.js.consumer_info("SUBMIT", "router")).config
    config.ack_wait = ACK_WAIT_S
    await bus.js.add_consumer("SUBMIT", config)


async def left(bus: Bus, stream: str) -> int:
    return (await bus.js.stream_info(stream)).state.messages


async def empty(bus: Bus, stream: str = "SUBMIT") -> None:
    async def drained() -> bool:
        return await left(bus, stream) == 0

    await until(drained, why=f"{stream} is empty")


async def test_what_a_handler_returns_is_published_before_the_ack(bus, bind):
    async def on_job(job, delivery):
        return [RunJob(tenant=job.tenant, job=job.input, at=delivery.sequence)]

    await bind(on_job)
    await submit(bus, "j1")
    await empty(bus)

    stored = await bus.js.get_msg("RUN", 1)
    assert (stored.subject, stored.headers["Nats-Msg-Id"]) == ("jobs.run.interactive.default", "default/j1:1")


async def test_a_retry_waits_in_place_and_costs_no_delivery(bus, bind):
    tries = []

    async def on_job(job, delivery):
        tries.append(delivery.deliveries)
        if len(tries) < 4:
            raise Retry("the database is away", after_s=0.4)

    await hurry(bus)
    await bind(on_job)
    await submit(bus, "j1")
    await empty(bus)

    assert tries == [1, 1, 1, 1]
    assert await left(bus, "DEAD") == 0


async def test_a_replica_without_what_it_needs_hands_over_to_another(bus, bind, monkeypatch):
    monkeypatch.setattr("wayline.chassis.handling.worker.HELD_MAX_S", 0.3)
    monkeypatch.setattr("wayline.chassis.handling.worker.REST_S", 60)
    names = [f"j{n}" for n in range(6)]
    held, whole = set(), Noting()

    async def on_job(job, delivery):
        held.add((job.input, delivery.deliveries))
        raise Retry("this zone reaches no database", after_s=0.1)

    await bind(on_job)
    for name in names:
        await submit(bus, name)
    await until(lambda: len(held) == len(names), why="the one that is cut off has all of them")
    await bind(whole)

    await until(lambda: sorted(whole.inputs) == names, why="the other replica has them")
    await empty(bus)
    assert len(held) == len(names), "what was handed back came to the same replica again"


async def test_a_message_that_waits_for_its_own_keeps_none_waiting(bus, bind, monkeypatch):
    monkeypatch.setattr("wayline.chassis.handling.worker.HELD_MAX_S", 0.1)
    monkeypatch.setattr("wayline.chassis.handling.worker.REST_S", 60)
    whole = Noting()

    async def on_job(job, delivery):
        if job.input == "j1" and delivery.deliveries < 3:
            raise Deferred("its user is being forgotten", after_s=0.1)
        await whole(job, delivery)

    await bind(on_job)
    await submit(bus, "j1")

    await until(lambda: whole.inputs == ["j1"], why="it is handed back and comes again")
    await submit(bus, "j2")
    await empty(bus)


async def test_a_replica_that_handed_back_takes_messages_again(bus, bind, monkeypatch):
    monkeypatch.setattr("wayline.chassis.handling.worker.HELD_MAX_S", 0.3)
    monkeypatch.setattr("wayline.chassis.handling.worker.REST_S", 0.3)
    deliveries = set()

    async def on_job(job, delivery):
        deliveries.add(delivery.deliveries)
        if len(deliveries) < 3:
            raise Retry("the database is away", after_s=0.1)

    await bind(on_job)
    await submit(bus, "j1")

    await until(lambda: len(deliveries) == 3, why="it has the message again")
    await empty(bus)


async def test_a_message_whose_deliveries_count_is_not_handed_over(bus, bind, monkeypatch):
    monkeypatch.setattr("wayline.chassis.handling.worker.HELD_MAX_S", 0)
    tries = []

    async def on_job(job, delivery):
        tries.append(delivery.deliveries)
        if len(tries) < 4:
            raise Retry("the database is away", after_s=0.01)

    async def before_dead(delivery, code, reason):
        pass

    await bind(on_job, before_dead=before_dead)
    await submit(bus, "j1")
    await empty(bus)

    assert tries == [1, 1, 1, 1]


async def test_a_rejected_message_is_put_aside_whole(bus, bind):
    await bind(refuse)
    await submit(bus, "j1")
    await empty(bus)

    letter = await bus.js.get_msg("DEAD", 1)
    assert letter.subject == "dead.SUBMIT.router.default"
    assert letter.headers["Wayline-Dead-Code"] == "wild"
    assert letter.headers["Wayline-Dead-Reason"] == "too wild"
    assert SubmitJob.from_wire(letter.data, "jobs.submit.default").input == "j1"


async def test_the_letter_of_a_large_message_is_without_its_end(bus, bind):
    noted = Noting()
    await bind(noted)
    await bus.js.publish("jobs.submit.default", b"x" * (SUBMISSION_MAX_BYTES - 100))
    await submit(bus, "neighbour")
    await empty(bus)

    letter = await bus.js.get_msg("DEAD", 1)
    assert letter.headers["Wayline-Dead-Code"] == "invalid_message"
    missing = f"(only the first {BODY_MAX_BYTES} of the body's {SUBMISSION_MAX_BYTES - 100} bytes are kept)"
    assert letter.headers["Wayline-Dead-Reason"].endswith(missing)
    assert len(letter.data) == BODY_MAX_BYTES
    assert noted.inputs == ["neighbour"]


@pytest.mark.parametrize(
    ("sent", "kept", "says"),
    [
        ({"Sent/By": "me", "Sent-By": "me"}, "me", "the body is not JSON"),
        ({"Sent-By": "m" * 65_400}, None, "(its headers of 65427 bytes are not kept)"),
    ],
)
async def test_invalid_headers_are_left_out_of_a_dead_letter(bus, bind, sent, kept, says):
    await bind(never_reached)
    # The client library refuses some names that others send.
    head = "".join(["NATS/1.0\r\n", *(f"{name}: {value}\r\n" for name, value in sent.items()), "\r\n"]).encode()
    await bus.nc._send_command(b"HPUB jobs.submit.default %d %d\r\n%sno\r\n" % (len(head), len(head) + 2, head))

    await bus.settled()
    await empty(bus)

    letter = await bus.js.get_msg("DEAD", 1)
    assert letter.headers.get("Sent-By") == kept
    assert says in letter.headers["Wayline-Dead-Reason"]


async def test_a_retry_before_a_dead_letter_costs_no_delivery(bus, bind):
    handled, tries = [], []

    async def on_job(job, delivery):
        handled.append(delivery.deliveries)
        raise Reject("too wild", code="wild")

    async def before_dead(delivery, code, reason):
        tries.append((delivery.deliveries, code))
        if len(tries) < 3:
            raise Retry("the database is away", after_s=0.01)

    await bind(on_job, before_dead=before_dead)
    await submit(bus, "j1")
    await empty(bus)

    assert handled == [1]
    assert tries == [(1, "wild")] * 3
    assert await left(bus, "DEAD") == 1


async def test_a_message_without_its_dead_letter_is_handed_back_on_stop(bus, bind):
    begun, noted = asyncio.Event(), Noting()

    async def before_dead(delivery, code, reason):
        begun.set()
        await asyncio.Event().wait()

    service = await bind(refuse, before_dead=before_dead)
    await submit(bus, "j1")
    await asyncio.wait_for(begun.wait(), 10)
    await service.stop(0.05)
    await bind(noted)

    await until(lambda: noted.inputs == ["j1"], within=SUBMIT_ROUTER.ack_wait_s / 2, why="somebody else has it at once")


@pytest.mark.parametrize("status", cases(["100", "408", "503"]))
async def test_a_message_with_status_headers_is_an_ordinary_message(bus, bind, status):
    await bind(never_reached)
    await bus.js.publish("jobs.submit.default", b"", headers={"Status": status, "Nats-Pending-Messages": "9"})
    await empty(bus)

    assert (await bus.js.get_msg("DEAD", 1)).headers["Wayline-Dead-Code"] == "invalid_message"


async def test_a_handler_that_keeps_failing_gives_up_its_message(bus, bind, monkeypatch):
    monkeypatch.setattr("wayline.chassis.handling.worker.ATTEMPTS_MAX", 3)
    tries = []

    async def on_job(job, delivery):
        tries.append(delivery.deliveries)
        raise ZeroDivisionError("unexpected")

    await bind(on_job)
    await submit(bus, "j1")
    await empty(bus)

    assert tries == [1, 2, 3]
    assert (await bus.js.get_msg("DEAD", 1)).headers["Wayline-Dead-Code"] == "undeliverable"


async def test_a_message_that_may_kill_its_reader_is_dead_lettered_unread(bus, bind, monkeypatch):
    monkeypatch.setattr("wayline.chassis.handling.worker.ATTEMPTS_MAX", 1)
    read = []

    async def hear(self, kind, message):
        read.append(message.subject)

    async def before_dead(delivery, code, reason):
        pass

    await submit(bus, "j1")
    pulled = await bus.js.pull_subscribe_bind(consumer="router", stream="SUBMIT")
    (message,) = await pulled.fetch(1, timeout=5)
    await message.nak()
    monkeypatch.setattr(Bus, "hear", hear)
    await bind(None, before_dead=before_dead)
    await empty(bus)

    letter = await bus.js.get_msg("DEAD", 1)
    assert letter.headers["Wayline-Dead-Code"] == "undeliverable"
    assert read == []


async def spend(bus, deliveries):
    """Have a message come so often to processes that end before they handle it."""
    pulled = await bus.js.pull_subscribe_bind(consumer="router", stream="SUBMIT")
    for _ in range(deliveries):
        (message,) = await pulled.fetch(1, timeout=5)
        await message.nak()
    await pulled.unsubscribe()


class BegunTable:
    """Counts handlers that began and did not end; so many have before."""

    def __init__(self, begun=0):
        self.begun = begun

    async def count(self, _):
        self.begun += 1
        return self.begun

    async def take_back(self, _):
        self.begun -= 1


async def test_deliveries_that_restarts_spent_give_no_message_up(bus, bind):
    noted = Noting()
    failed = []

    async def on_job(job, delivery):
        if not failed:
            failed.append(delivery.deliveries)
            raise ZeroDivisionError("once")
        return await noted(job, delivery)

    async def before_dead(delivery, code, reason):
        pass

    await submit(bus, "j1")
    await spend(bus, ATTEMPTS_MAX + 5)
    await bind(on_job, before_dead=before_dead, begun=BegunTable())
    await empty(bus)

    assert failed[0] > ATTEMPTS_MAX and noted.inputs == ["j1"]
    assert (await bus.js.stream_info("DEAD")).state.messages == 0


async def test_handlers_that_fail_and_end_are_none_that_died(bus, bind, monkeypatch):
    monkeypatch.setattr("wayline.chassis.handling.worker.NAK_FIRST_S", 0.01)
    noted, begun, failed = Noting(), BegunTable(), []

    async def on_job(job, delivery):
        if len(failed) <= BEGUN_MAX:
            failed.append(delivery.deliveries)
            raise ZeroDivisionError("again and again")
        return await noted(job, delivery)

    async def before_dead(delivery, code, reason):
        pass

    await submit(bus, "j1")
    await spend(bus, ATTEMPTS_MAX + 1)
    await bind(on_job, before_dead=before_dead, begun=begun)
    await empty(bus)

    assert noted.inputs == ["j1"] and len(failed) == BEGUN_MAX + 1
    assert begun.begun == 0
    assert (await bus.js.stream_info("DEAD")).state.messages == 0


async def test_a_message_whose_handlers_began_and_died_is_given_up(bus, bind):
    async def before_dead(delivery, code, reason):
        pass

    await submit(bus, "j1")
    await spend(bus, ATTEMPTS_MAX + 1)
    await bind(never_reached, before_dead=before_dead, begun=BegunTable(BEGUN_MAX))
    await empty(bus)

    letter = await bus.js.get_msg("DEAD", 1)
    assert letter.headers["Wayline-Dead-Code"] == "undeliverable"
    assert f"none of {BEGUN_MAX} handlers that began ended" in letter.headers["Wayline-Dead-Reason"]


async def test_a_message_goes_although_what_must_come_before_its_letter_fails(bus, bind):
    async def before_dead(delivery, code, reason):
        raise ZeroDivisionError("a defect")

    await bind(refuse, before_dead=before_dead)
    await submit(bus, "j1")
    await empty(bus)

    letter = await bus.js.get_msg("DEAD", 1)
    assert letter.headers["Wayline-Dead-Code"] == "wild"
    assert "too wild; and before it was put aside: ZeroDivisionError" in letter.headers["Wayline-Dead-Reason"]


async def test_a_handler_slower_than_the_ack_wait_is_not_run_twice(bus, bind):
    noted = Noting(held=True)
    await hurry(bus)
    await bind(noted)
    await bind(noted)
    # Both replicas have several in hand, which were not begun together.
    for n in range(4):
        await submit(bus, f"slow{n}")
        await until(lambda n=n: len(noted.inputs) == n + 1, why="its handler runs")

    async def outlived() -> bool:
        info = await bus.js.consumer_info("SUBMIT", "router")
        assert info.num_redelivered == 0, "the message was given to somebody else"
        return loop.time() > end

    loop = asyncio.get_running_loop()
    end = loop.time() + 2.5
    await until(outlived, why="more than two ack waits have passed")
    noted.go_on.set()
    await empty(bus)
    assert noted.inputs == ["slow0", "slow1", "slow2", "slow3"]


async def test_no_more_is_taken_than_can_be_started(bus, bind):
    busy, idle = Noting(held=True), Noting()
    await bind(busy, slots=2)
    for n in range(6):
        await submit(bus, f"j{n}")
    await until(lambda: len(busy.inputs) == 2, why="both slots are taken")

    await bind(idle, slots=8)

    await until(lambda: len(idle.inputs) == 4, why="an idle replica takes what the busy one could not start")
    busy.go_on.set()
    await empty(bus)


async def test_a_stopped_service_gives_back_what_it_had_not_finished(bus, bind):
    started = []

    async def on_job(job, delivery):
        started.append(delivery.deliveries)
        if len(started) == 1:
            await asyncio.Event().wait()

    service = await bind(on_job)
    await submit(bus, "j1")
    await until(lambda: started == [1], why="the handler runs")

    await service.stop(0.05)
    await bind(on_job)

    await empty(bus)
    assert started == [1, 2]


async def test_a_reconnected_busy_service_is_sent_no_surplus_messages(bus, bind):
    started, finish = [], asyncio.Event()

    async def on_job(job, delivery):
        started.append(delivery.deliveries)
        await finish.wait()

    service = await bind(on_job, slots=2)
    # The server is the same one, and remembers what it was asked for over each of the connections.
    for _ in range(3):
        back = asyncio.Event()
        service.bus.reconnected.append(back.set)
        await service.bus.nc.force_reconnect()
        await asyncio.wait_for(back.wait(), 15)
        await service.bus.settled()
    for n in range(6):
        await submit(bus, f"j{n}")
    await until(lambda: len(started) == 2, why="both slots are taken")
    await service.bus.settled()

    assert (await bus.js.consumer_info("SUBMIT", "router")).num_ack_pending == 2
    finish.set()
    await empty(bus)
    assert started == [1] * 6


async def test_a_message_arriving_as_a_service_stops_is_handed_back(bus, bind, server):
    noted = Noting()
    service = await bind(noted)
    # Sent without a turn of the event loop: the service cannot have read what the server sends it when it stops.
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        job = SubmitJob(tenant="default", agent="a", input="j1").to_wire()
        client.sendall(b"CONNECT {}\r\nPUB jobs.submit.default %d\r\n%s\r\nPING\r\n" % (len(job), job))
        received = b""
        while b"PONG" not in received:
            received += client.recv(4_096)
    await service.stop(1)
    await bind(noted)

    await until(lambda: noted.inputs == ["j1"], within=SUBMIT_ROUTER.ack_wait_s / 2, why="somebody else has it at once")


async def test_work_goes_on_after_the_server_was_killed_and_restarted(bus, bind, server):
    noted = Noting()
    await bind(noted)
    await submit(bus, "before")
    await until(lambda: "before" in noted.inputs, why="the first job is done")
    await server.kill()
    await server.start()

    await submit(bus, "after")

    await until(lambda: "after" in noted.inputs, why="the second job is done")


async def submit_for(bus: Bus, tenant: str, name: str) -> None:
    await bus.publish(SubmitJob(tenant=tenant, agent="a", input=name), msg_id=f"{tenant}/{name}")


async def test_what_waits_for_something_away_leaves_its_slot_to_others(bus, bind):
    noted = AwayFor("acme")
    await bind(noted, slots=4)
    for n in range(20):
        await submit_for(bus, "acme", f"a{n}")
    await submit_for(bus, "globex", "plain")

    await until(lambda: noted.inputs == ["plain"], why="the other tenant's message is handled")
    assert (await bus.js.consumer_info("SUBMIT", "router")).num_redelivered == 0
    noted.go_on.set()
    await empty(bus)
    assert sorted(noted.inputs) == sorted(["plain", *(f"a{n}" for n in range(20))])


async def test_no_tenant_has_all_the_slots(bus, bind):
    finish, begun = asyncio.Event(), []

    async def on_job(job, _):
        begun.append(job.tenant)
        await finish.wait()

    await bind(on_job, slots=8)
    for n in range(12):
        await submit_for(bus, "acme", f"a{n}")
    await until(lambda: begun == ["acme"] * 6, why="a tenant has its share of the slots")
    await submit_for(bus, "globex", "plain")

    await until(lambda: begun == [*["acme"] * 6, "globex"], why="the other tenant's message is begun")
    finish.set()
    await empty(bus)
    assert begun.count("acme") == 12


async def test_a_tenants_waiting_surplus_is_handed_back_without_loss(bus, bind, monkeypatch):
    monkeypatch.setattr("wayline.chassis.handling.worker.HANDED_BACK_S", 0.1)
    monkeypatch.setenv("WAYLINE_WAITING_PER_TENANT_MAX", "2")
    noted = AwayFor("acme")
    await bind(noted, slots=4)
    for n in range(10):
        await submit_for(bus, "acme", f"a{n}")
    await submit_for(bus, "globex", "plain")

    await until(lambda: noted.inputs == ["plain"], why="the other tenant's message is handled")
    noted.go_on.set()
    await empty(bus)
    assert len(noted.inputs) == 11
    assert await left(bus, "DEAD") == 0
