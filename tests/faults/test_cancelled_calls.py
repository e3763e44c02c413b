"""Jobs that end while a tool is called and its executor or registry is killed or frozen.

Nothing begins after the end, and what acted is in the log, in its cost and in the ledger alike.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
import pytest_asyncio

from wayline.contracts import events as e
from wayline.contracts.errors import Retry
from wayline.contracts.jobs import Cancel
from wayline.contracts.tools import CallTool, ToolReply
from wayline.journal import read_record
from wayline.testkit import until
from wayline.testkit.effects_server import EffectsServer
from wayline.testkit.processes import ServiceProcess

from .conftest import MakePlatform
from .platform import TENANT, FaultPlatform, calls, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

SLOW_MS = 3_000
BOOK, PAY, PUT = "slow__book_reconcile", "slow__pay_once", "slow__put_idempotent"
COST = Decimal("0.01")
"""Of one `pay_once`, as the effects server says."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform) -> AsyncIterator[FaultPlatform]:
    platform = await make_platform()
    slow = platform.slow = EffectsServer(platform.effects.file, delay_ms=SLOW_MS)
    await slow.start()
    platform.fleet.set("tool_registry", WAYLINE_TOOL_REGISTRY_SERVERS=[slow.settings(name="slow")])
    await platform.fleet.ensure("router")
    yield platform
    slow.kill()


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def no_process_left(platform: FaultPlatform) -> AsyncIterator[None]:
    yield
    await platform.fleet.stop("executor", "tool_registry")


async def events(platform: FaultPlatform, job_id: str) -> list[e.Event]:
    return [event for record in await platform.records(job_id) for event in read_record(record.data)]


async def until_requested(platform: FaultPlatform, job_id: str) -> None:
    async def requested() -> bool:
        return any(isinstance(event, e.ToolRequested) for event in await events(platform, job_id))

    await until(requested, within=60, why=f"{job_id} has asked for its tool")


async def until_begun(platform: FaultPlatform, tool: str, job_id: str) -> None:
    await until(lambda: platform.effects.has_begun(tool, key_of(job_id)), within=60, why=f"the tool of {job_id} works")


def key_of(job_id: str) -> str:
    return f"{TENANT}/{job_id}/1/1"


async def outcome(platform: FaultPlatform, job_id: str) -> e.ToolCompleted:
    """The one end of the job's call, which the log has before the job's own end and which the ledger says too."""
    found = await events(platform, job_id)
    (completed,) = [event for event in found if isinstance(event, e.ToolCompleted)]
    assert found.index(completed) < len(found) - 1
    (row,) = await platform.sql(
        "SELECT state, result->>'status' AS status, result->>'cost_usd' AS cost FROM tools.calls WHERE key = $1",
        key_of(job_id),
    )
    assert (row["state"], row["status"]) == ("finished", completed.status)
    assert (Decimal(row["cost"]) if row["cost"] else None) == completed.cost_usd
    assert (await platform.job(job_id)).money.costs.tool.get(completed.tool) == completed.cost_usd
    return completed


async def test_a_killed_executors_call_is_awaited_before_its_job_is_cancelled(platform: FaultPlatform):
    await platform.fleet.ensure("tool_registry")
    doomed = await platform.fleet.start("executor")
    await platform.submit_plan("killed-executor", calls(PAY))
    await until_begun(platform, "pay_once", "killed-executor")
    doomed.kill()

    await platform.signal("killed-executor", Cancel())
    await platform.fleet.start("executor")
    await platform.until_ended("killed-executor")

    acted_before_the_end = platform.effects.count("pay_once", key_of("killed-executor"))
    assert (await platform.job("killed-executor")).life.status == "cancelled"
    assert acted_before_the_end == 1
    completed = await outcome(platform, "killed-executor")
    assert (completed.status, completed.cost_usd) == ("success", COST)
    await platform.until_quiet()
    await platform.check("killed-executor")


async def test_a_call_unread_by_a_frozen_registry_never_begins_after_cancel(platform: FaultPlatform):
    """The only registry is frozen before the job asks; another one settles the key that it never saw."""
    frozen = await platform.fleet.start("tool_registry")
    await platform.fleet.start("executor")
    # The listing is fresh, so the job asks for nothing but its call.
    await platform.submit_plan("warm", calls(PUT), says("done"))
    await platform.until_ended("warm")
    frozen.pause()
    await platform.submit_plan("unread", calls(PAY))
    await until_requested(platform, "unread")

    # Before another registry hears, or it might be asked for the call itself.
    await platform.signal("unread", Cancel())
    await platform.fleet.start("tool_registry")
    await platform.until_ended("unread")
    frozen.resume()
    reply = await told_by(platform, frozen, "unread")

    assert (await platform.job("unread")).life.status == "cancelled"
    assert not platform.effects.has_begun("pay_once", key_of("unread"))
    completed = await outcome(platform, "unread")
    assert completed.error is not None
    assert completed.error.code == "cancelled"
    assert reply.repeated
    await platform.until_quiet()
    await platform.check("unread")


@pytest.mark.slow
async def test_a_cancel_ends_though_the_only_registry_stays_frozen(platform: FaultPlatform):
    """Once it goes on, it finds the cancel behind the call that it never saw, and does not begin it."""
    frozen = await platform.fleet.start("tool_registry")
    await platform.fleet.start("executor")
    await platform.submit_plan("listed", calls(PUT), says("done"))
    await platform.until_ended("listed")
    frozen.pause()
    await platform.submit_plan("alone", calls(PAY))
    await until_requested(platform, "alone")

    await platform.signal("alone", Cancel())
    await platform.until_ended("alone")
    (completed,) = [event for event in await events(platform, "alone") if isinstance(event, e.ToolCompleted)]
    frozen.resume()
    reply = await told_by(platform, frozen, "alone")

    assert (await platform.job("alone")).life.status == "cancelled"
    assert completed.error is not None and "nobody knows whether it took effect" in completed.error.message
    assert reply.error is not None and reply.error.code == "cancelled"
    assert not platform.effects.has_begun("pay_once", key_of("alone"))


async def told_by(platform: FaultPlatform, registry: ServiceProcess, job_id: str) -> ToolReply:
    """Ask one registry for the job's key once it has dealt with all that it heard before."""
    for other in platform.fleet.running("tool_registry"):
        if other is not registry:
            other.kill()
    values = {"job_id": job_id, "step": 1, "call": "1", "tool": PAY}
    ask = CallTool(tenant=TENANT, key=key_of(job_id), deadline=datetime.now(UTC) + timedelta(seconds=60), **values)
    replies: list[ToolReply] = []

    async def told() -> bool:
        with suppress(Retry):
            replies.append(await platform.bus.ask(ask, ToolReply, timeout_s=2))
        return bool(replies) and replies[-1].status != "in_progress"

    await until(told, within=60, why="the registry knows how the call ended")
    return replies[-1]


async def test_a_call_whose_registry_was_killed_ends_as_unknown_for_good(platform: FaultPlatform):
    doomed = await platform.fleet.start("tool_registry")
    await platform.fleet.start("executor")
    await platform.submit_plan("killed-registry", calls(PAY))
    await until_begun(platform, "pay_once", "killed-registry")
    doomed.kill()

    await platform.signal("killed-registry", Cancel())
    await platform.fleet.start("tool_registry")
    await platform.until_ended("killed-registry")

    completed = await outcome(platform, "killed-registry")
    assert completed.error is not None
    assert (completed.error.code, completed.cost_usd) == ("cancelled", None)
    assert "it is not known whether it took effect" in completed.error.message
    await platform.until_quiet()
    await platform.check("killed-registry")


@pytest.mark.slow
async def test_a_reconcile_tool_is_asked_for_a_killed_registrys_call(platform: FaultPlatform):
    doomed = await platform.fleet.start("tool_registry")
    await platform.fleet.start("executor")
    await platform.submit_plan("asked", calls(BOOK))
    await until_begun(platform, "book_reconcile", "asked")
    doomed.kill()

    await platform.signal("asked", Cancel())
    await platform.fleet.start("tool_registry")
    await platform.until_ended("asked")

    completed = await outcome(platform, "asked")
    assert (completed.status, completed.content, completed.error) == ("success", "book_reconcile done", None)
    assert platform.effects.count("book_reconcile", key_of("asked")) == 1


@pytest.mark.slow
async def test_a_registry_thawed_after_the_cancel_keeps_the_recorded_outcome(platform: FaultPlatform):
    frozen = await platform.fleet.start("tool_registry")
    await platform.fleet.start("executor")
    await platform.submit_plan("frozen-registry", calls(PAY))
    await until_begun(platform, "pay_once", "frozen-registry")
    frozen.pause()

    await platform.fleet.start("tool_registry")
    await platform.signal("frozen-registry", Cancel())
    await platform.until_ended("frozen-registry")
    before = await outcome(platform, "frozen-registry")
    frozen.resume()
    reply = await told_by(platform, frozen, "frozen-registry")

    assert reply.error is not None
    assert before.error is not None
    assert reply.error.code == before.error.code == "cancelled"
    assert await outcome(platform, "frozen-registry") == before
    assert platform.effects.count("pay_once", key_of("frozen-registry")) <= 1


@pytest.mark.slow
async def test_an_executor_thawed_after_the_cancel_appends_nothing(platform: FaultPlatform):
    await platform.fleet.ensure("tool_registry")
    frozen = await platform.fleet.start("executor")
    await platform.submit_plan("frozen-executor", calls(PAY))
    await until_begun(platform, "pay_once", "frozen-executor")
    frozen.pause()

    await platform.fleet.start("executor")
    await platform.signal("frozen-executor", Cancel())
    await platform.until_ended("frozen-executor")
    before = await platform.records("frozen-executor")
    frozen.resume()
    frozen.drain()

    assert await frozen.ended() == 0
    assert (await outcome(platform, "frozen-executor")).cost_usd == COST
    assert len(await platform.records("frozen-executor")) == len(before)
    assert platform.effects.count("pay_once", key_of("frozen-executor")) == 1


@pytest.mark.slow
async def test_a_killed_executors_call_is_awaited_past_the_deadline(platform: FaultPlatform):
    await platform.fleet.ensure("tool_registry")
    doomed = await platform.fleet.start("executor")
    await platform.submit_plan("late", calls(PAY, text="one moment"), max_seconds=10)
    await until_begun(platform, "pay_once", "late")
    platform.slow.pause()
    doomed.kill()

    await platform.fleet.start("executor")
    await until_late(platform, "late")
    platform.slow.resume()
    await platform.until_ended("late")

    assert (await outcome(platform, "late")).cost_usd == COST
    assert platform.effects.count("pay_once", key_of("late")) == 1


async def until_late(platform: FaultPlatform, job_id: str) -> None:
    """Wait until the job's time is over."""

    async def late() -> bool:
        deadline = (await platform.job(job_id)).life.deadline
        return deadline is not None and datetime.now(UTC) > deadline

    await until(late, within=60, why=f"the time of {job_id} is over")
