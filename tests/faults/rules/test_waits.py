"""Rules 1, 14, 15 and 16 of the job protocol: nobody waits for what has been said already."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from wayline.contracts import events as e
from wayline.contracts.jobs import Answer, Cancel
from wayline.executor.hold.log_writer import LogWriter
from wayline.journal import log as journal_log
from wayline.journal import read_record
from wayline.testkit import until

from ..platform import ONCE, TENANT, FaultPlatform, calls, says
from .scene import ALL, lane_of, running, until_parked
from .wire import Wire, on, record

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


async def test_rule_1_a_replica_that_lags_misleads_no_reader(platform: FaultPlatform, monkeypatch: pytest.MonkeyPatch):
    """A direct get may know less than the leader: reading stops only where a leader read has said that the end is."""
    real, behind = journal_log._batch, Counter[tuple[Any, str]]()

    async def lagging(bus: Any, stream: str, request: dict[str, Any]) -> Any:
        # By task: whoever is misled does not get away with another try.
        reader = (asyncio.current_task(), request["next_by_subj"])
        behind[reader] += 1
        if bus is not platform.bus and behind[reader] <= 2:
            return journal_log.Batch([], 0)
        return await real(bus, stream, request)

    await platform.forget_outcome("r1", 1, "1")
    async with running(platform, *ALL):
        await platform.submit_plan("r1", calls(ONCE), says("done"))
        await until_parked(platform, "r1")
        monkeypatch.setattr(journal_log, "_batch", lagging)
        await platform.signal("r1", Answer(decision_id="1-1", outcome="succeeded"))
        await platform.until_ended("r1")
    assert (await platform.job("r1")).life.status == "completed"
    assert {subject for (_, subject), n in behind.items() if n > 2} >= {"signals.default.r1", "events.default.r1"}


async def test_rule_1_every_decision_rests_on_a_leader_read(platform: FaultPlatform, wire: Wire):
    """No last record or last signal is ever asked of a replica, and no bulk read comes before a leader read."""
    await platform.forget_outcome("r1-wire", 1, "1")
    async with running(platform, *ALL):
        await platform.submit_plan("r1-wire", calls(ONCE), says("done"))
        await until_parked(platform, "r1-wire")
        mark = len(wire.heard)
        await platform.signal("r1-wire", Answer(decision_id="1-1", outcome="succeeded"))
        claim = record("r1-wire", "job.claimed")
        await until(lambda: wire.find(claim, after=mark), within=60, why="it is claimed again")

    direct = [m for m in wire.heard if m.subject.startswith("$JS.API.DIRECT.GET.")]
    assert [m for m in direct if b"last_by_subj" in m.data or b"multi_last" in m.data] == []
    told = wire.find(on("jobs.run."), after=mark)
    claimed = wire.find(claim, after=mark)
    assert told is not None and claimed is not None
    # Of decisions on approvals, too: one question for both kinds of signals.
    for subject in ("events.default.r1-wire", "*.default.r1-wire"):
        asked = wire.find(on("$JS.API.STREAM.MSG.GET.", last_by_subj=subject), after=told)
        assert asked is not None and asked < claimed, subject


async def test_rule_14_a_cancel_is_heard_while_the_registry_is_away(platform: FaultPlatform):
    async with running(platform, "router", "executor") as services:
        await platform.submit_plan("r14", says("never"))
        held = lane_of(services["executor"])._by_job
        await until(lambda: (TENANT, "r14") in held, within=60, why="it is held")
        await platform.signal("r14", Cancel(reason="enough"))
        await platform.until_ended("r14", within=60)
        await platform.until_quiet()
    assert (await platform.job("r14")).life.status == "cancelled"


async def test_rule_15_question_and_expiry_exist_before_the_job_is_parked(platform: FaultPlatform, wire: Wire):
    """The question, then its expiry, then the park: after a crash in between nobody waits for ever."""
    await platform.forget_outcome("r15", 1, "1")
    async with running(platform, *ALL):
        await platform.submit_plan("r15", calls(ONCE), says("done"))
        await until_parked(platform, "r15")
        await platform.until_ended("r15")
        await platform.until_quiet()
    order = wire.order(record("r15", "tool.unknown"), on("later.default.r15."), record("r15", "job.parked"))
    assert None not in order and order == sorted(order) and len(set(order)) == 3  # type: ignore[type-var]


async def test_rule_16_a_signal_just_before_the_park_wakes_the_job(
    platform: FaultPlatform, wire: Wire, monkeypatch: pytest.MonkeyPatch
):
    """The router saw an active job and let the signal go: only the parker can find it, by looking once more.

    And it never resumes by itself: the next claim lives on another ticket.
    """
    real = LogWriter.append
    slipped: list[str] = []

    async def append(writer: LogWriter, *points: Any) -> None:
        if writer._noted and writer._noted[-1].type == "job.parked" and not slipped:
            slipped.append(writer.job.job_id)
            await platform.signal("r16", Answer(decision_id="1-1", outcome="succeeded"))

            async def let_go() -> bool:
                info = await platform.bus.js.consumer_info("SIGNALS", "router")
                return info.num_pending == 0 and info.num_ack_pending == 0

            await until(let_go, within=60, why="the router has let the signal go")
        await real(writer, *points)

    monkeypatch.setattr(LogWriter, "append", append)
    await platform.forget_outcome("r16", 1, "1")
    async with running(platform, *ALL):
        await platform.submit_plan("r16", calls(ONCE), says("done"))
        # Nobody else answers here: a job that stays parked would wait for ever.
        await until(lambda: wire.find(record("r16", "job.completed")), within=60, why="the job went on")
        await platform.until_quiet()
    assert slipped == ["r16"]
    claims = [
        event
        for message in await platform.records("r16")
        for event in read_record(message.data)
        if isinstance(event, e.JobClaimed)
    ]
    assert len({claim.owner.partition(":")[0] for claim in claims}) == len(claims) == 2
