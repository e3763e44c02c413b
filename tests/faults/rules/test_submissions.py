"""Rules 5, 6, 10 and 25 of the job protocol: no submission is lost, begun twice or tried for ever."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import orjson
import pytest

from wayline.chassis.handling.worker import ATTEMPTS_MAX, BEGUN_MAX
from wayline.contracts import headers as h
from wayline.contracts.errors import Full, Unavailable
from wayline.journal import Head, JobLog, read_record
from wayline.router import bindings
from wayline.router.admission.admission_table import AdmissionTable
from wayline.testkit import until

from ..conftest import ACK_WAIT_S
from ..platform import TENANT, FaultPlatform, says
from .scene import ALL, running, types
from .wire import Wire, ack, on, record

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


async def test_rule_5_no_submission_ticket_or_signal_runs_out_of_deliveries(platform: FaultPlatform):
    """An outage would use them up: a message past the limit is a job that is stuck for ever."""
    for stream, consumer in (
        ("SUBMIT", "router"),
        ("RUN", "interactive"),
        ("RUN", "batch"),
        ("RUN", "interactive_backlog"),
        ("RUN", "batch_backlog"),
        ("SIGNALS", "router"),
        ("SIGNALS", "approvals"),
    ):
        config = (await platform.bus.js.consumer_info(stream, consumer)).config
        assert config.max_deliver == -1, (stream, consumer)


async def test_rule_5_waiting_for_an_absent_dependency_costs_no_delivery(
    platform: FaultPlatform, wire: Wire, monkeypatch: pytest.MonkeyPatch
):
    away, real = asyncio.Event(), AdmissionTable.admit

    async def admit(admissions: AdmissionTable, *given: Any) -> Any:
        if not away.is_set():
            raise Unavailable("Postgres", after_s=0.05)
        return await real(admissions, *given)

    monkeypatch.setattr(AdmissionTable, "admit", admit)
    monkeypatch.setattr(bindings, "SUBMIT_ROUTER", replace(bindings.SUBMIT_ROUTER, ack_wait_s=2 * ACK_WAIT_S))
    async with running(platform, *ALL):
        await platform.submit_plan("r5", says("done"))
        # Six thirds: twice as long as the server would have waited.
        waits = lambda: len([payload for _, _, payload in wire.acks("SUBMIT") if payload == b"+WPI"])  # noqa: E731
        await until(lambda: waits() >= 6, within=60, why="the router says that it is still at it")
        away.set()
        await platform.until_ended("r5")
        await platform.until_quiet()
    assert {delivery for _, delivery, _ in wire.acks("SUBMIT")} == {1}


async def test_rule_6_the_router_queues_tickets_while_submit_is_full(platform: FaultPlatform):
    """In one shared full stream no ticket can be published, so no submission acked, so the stream stays full."""
    js = platform.bus.js
    config = (await js.stream_info("SUBMIT")).config
    await js.update_stream(config.evolve(max_msgs=2, max_msgs_per_subject=2))
    try:
        jobs = [await platform.submit_plan(f"r6-{n}", says("done")) for n in range(2)]
        with pytest.raises(Full):
            await platform.submit_plan("r6-refused", says("done"))
        async with running(platform, *ALL):
            await platform.until_ended(*jobs)
            await platform.until_quiet()
            await platform.submit_plan("r6-refused", says("done"))
            await platform.until_ended("r6-refused")
            await platform.until_quiet()
    finally:
        await js.update_stream(config)


async def test_rule_6_a_full_ticket_queue_delays_submissions_and_loses_none(platform: FaultPlatform):
    """The accepted job keeps its place in SUBMIT until its ticket is in; it is no dead letter."""
    js = platform.bus.js
    config = (await js.stream_info("RUN")).config
    await js.update_stream(config.evolve(max_msgs=1))
    try:
        async with running(platform, "router"):
            jobs = [await platform.submit_plan(f"r6-run-{n}", says("done")) for n in range(3)]

            async def all_begun() -> bool:
                return all([await platform.records(job_id) for job_id in jobs])

            await until(all_begun, within=60, why="every job has its log")
            async with running(platform, "executor", "tool_registry"):
                await platform.until_ended(*jobs)
                await platform.until_quiet()
        assert await platform.dead_letters() == []
    finally:
        await js.update_stream(config)


async def test_rule_10_a_late_router_repeats_no_reservation_and_no_log(
    platform: FaultPlatform, wire: Wire, monkeypatch: pytest.MonkeyPatch
):
    """The row is never deleted, so that a reservation after the settlement changes nothing; the first record
    is expected at 0."""
    async with running(platform, *ALL):
        await platform.submit_plan("r10", says("done"))
        await platform.until_ended("r10")
        await platform.until_quiet()
        before, real = await platform.records("r10"), JobLog.last
        blind = {"r10"}

        async def last(log: JobLog) -> Head | None:
            # What a router saw that read the log before there was one, and slept until now.
            if log.job_id in blind:
                blind.discard(log.job_id)
                return None
            return await real(log)

        monkeypatch.setattr(JobLog, "last", last)
        mark = len(wire.heard)
        await platform.bus.js.publish(
            f"jobs.submit.{TENANT}", orjson.dumps(orjson.loads(before_submission(wire, "r10"))), headers={}
        )
        await until(lambda: wire.find(ack("SUBMIT"), after=mark), within=60, why="the second submission is acked")
        await platform.until_quiet()

    assert not blind
    first = read_record(before[0].data)
    assert [event.type for event in first] == ["job.submitted", "job.routed"]
    assert before[0].headers is not None and len(await platform.records("r10")) == len(before)
    assert wire.find(on("jobs.run."), after=mark) is None
    rows = await platform.sql("SELECT state FROM router.reservations WHERE job_id = 'r10'")
    assert [row["state"] for row in rows] == ["settled"]


def before_submission(wire: Wire, job_id: str) -> bytes:
    """The body with which a job was submitted."""
    place = wire.find(on("jobs.submit.", job_id=job_id))
    assert place is not None
    return wire.heard[place].data


async def test_rule_10_log_then_ticket_then_ack(platform: FaultPlatform, wire: Wire):
    async with running(platform, "router"):
        await platform.submit_plan("r10-order", says("done"))
        await until(lambda: wire.find(ack("SUBMIT")), within=60, why="the submission is acked")
    order = wire.order(record("r10-order", "job.submitted"), on("jobs.run.", job="r10-order"), ack("SUBMIT"))
    assert None not in order and order == sorted(order)  # type: ignore[type-var]
    async with running(platform, *ALL):
        await platform.until_ended("r10-order")
        await platform.until_quiet()


async def spend_deliveries(platform: FaultPlatform, job_id: str) -> int:
    """Submit a job, and have its message come more often than any is tried; return its place in the stream."""
    await platform.submit_plan(job_id, says("never mind"))
    pulled = await platform.bus.js.pull_subscribe_bind(consumer="router", stream="SUBMIT")
    sequence = 0
    for _ in range(ATTEMPTS_MAX + 1):
        (message,) = await pulled.fetch(1, timeout=10)
        sequence = message.metadata.sequence.stream
        await message.nak()
    await pulled.unsubscribe()
    return sequence


async def test_rule_25_deliveries_that_restarts_spent_end_no_job(platform: FaultPlatform):
    await spend_deliveries(platform, "r25-innocent")

    async with running(platform, *ALL):
        await platform.until_ended("r25-innocent")
        await platform.until_quiet()

    assert (await platform.job("r25-innocent")).life.error is None
    assert (await types(platform, "r25-innocent"))[-1] == "job.completed"
    assert await platform.dead_letters() == []


async def test_rule_25_a_submission_that_kills_every_router_ends_as_undeliverable(platform: FaultPlatform):
    """Its handlers began and never ended: each dies, and everybody else's jobs with it."""
    sequence = await spend_deliveries(platform, "r25")
    await platform.sql(
        "INSERT INTO router.begun_messages (consumer, sequence, begun) VALUES ('SUBMIT/router', $1, $2)",
        *(sequence, BEGUN_MAX),
    )
    async with running(platform, *ALL):
        await platform.until_ended("r25")
        await platform.until_quiet()
    assert await types(platform, "r25") == ["job.submitted", "job.failed"]
    error = (await platform.job("r25")).life.error
    assert error is not None and error.code == "undeliverable"
    (letter,) = await platform.dead_letters()
    assert (letter[h.DEAD_CODE], letter[h.DEAD_STREAM]) == ("undeliverable", "SUBMIT")
    await platform.bus.js.purge_stream("DEAD")
