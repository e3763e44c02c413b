"""Executors frozen, drained and crashing in the middle of a job: what they may still do, and who goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import pytest
import pytest_asyncio

from wayline.contracts import headers as h
from wayline.embedded.ports import free_port
from wayline.journal import read_record
from wayline.testkit import until
from wayline.testkit.effects_server import EffectsServer
from wayline.testkit.processes import ServiceProcess

from .conftest import ACK_WAIT_S, MakePlatform
from .log_checks import story
from .platform import ONCE, FaultPlatform, calls, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

SLOW, SLOW_MS = "slow__pay_once", 4_000
NEVER_S = 600.0
"""An `ack_wait` that no test lives to see: what is redelivered was handed back."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform) -> AsyncIterator[FaultPlatform]:
    platform = await make_platform()
    slow = platform.slow = EffectsServer(platform.effects.file, delay_ms=SLOW_MS)
    await slow.start()
    servers = [platform.effects.settings(), slow.settings(name="slow")]
    platform.fleet.set("tool_registry", WAYLINE_TOOL_REGISTRY_SERVERS=servers)
    await platform.fleet.ensure("router", "tool_registry")
    yield platform
    slow.kill()


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def no_executor_left(platform: FaultPlatform) -> AsyncIterator[None]:
    yield
    await platform.fleet.stop("executor")
    await platform.set_ack_wait(ACK_WAIT_S)


@pytest_asyncio.fixture(loop_scope="module")
async def only_handed_back(platform: FaultPlatform) -> None:
    """Have tickets come again when they are handed back, never because time has passed."""
    await platform.set_ack_wait(NEVER_S)


async def until_logged(platform: FaultPlatform, job_id: str, kind: str) -> None:
    async def logged() -> bool:
        return kind in [event.type for record in await platform.records(job_id) for event in read_record(record.data)]

    await until(logged, within=60, why=f"{job_id} has {kind} in its log")


async def until_held(platform: FaultPlatform, name: str) -> None:
    await until(lambda: name in platform.holds, within=60, why=f"the model call {name} is under way")


async def claims(platform: FaultPlatform, job_id: str) -> list[str]:
    events = [event for record in await platform.records(job_id) for event in read_record(record.data)]
    return [event.executor for event in events if event.type == "job.claimed"]


def by(process: ServiceProcess) -> str:
    """The end of the name under which a process claims."""
    return f"-{process.pid}"


async def test_an_executor_thawed_after_losing_its_job_touches_nothing(platform: FaultPlatform):
    """Rule 3: it holds an old delivery of the ticket its successor lives on; an ack or a nak of it would be obeyed."""
    port = free_port()
    sleeper = await platform.fleet.start("executor", env={"WAYLINE_HEALTH_PORT": str(port)})
    await platform.submit_plan("frozen", calls(SLOW), says("done and said", hold="frozen"))
    await until_logged(platform, "frozen", "tool.requested")
    sleeper.pause()
    await platform.fleet.start("executor")
    await until_held(platform, "frozen")
    # From here on no time makes the ticket come again: not to the sleeper either.
    await platform.set_ack_wait(NEVER_S)
    before = await platform.records("frozen")

    sleeper.resume()

    async def fenced() -> bool:
        async with httpx2.AsyncClient() as client:
            text = (await client.get(f"http://127.0.0.1:{port}/metrics")).text
        counted = [line for line in text.splitlines() if line.startswith("wayline_jobs_fenced_total{")]
        return any(float(line.rsplit(" ", 1)[1]) > 0 for line in counted)

    await until(fenced, within=60, why="the sleeper notices that it was fenced")
    sleeper.drain()
    assert await sleeper.ended() == 0
    after = await platform.records("frozen")
    assert [record.headers for record in after] == [record.headers for record in before]
    assert (await platform.bus.js.stream_info("RUN")).state.messages == 1

    platform.holds["frozen"].set()
    await platform.until_ended("frozen")
    await platform.until_quiet()
    await platform.check("frozen")
    assert len(await claims(platform, "frozen")) == 2
    assert platform.effects.count("pay_once", "default/frozen/1/1") == 1


@pytest.mark.timeout(300)
async def test_a_crash_loop_fails_its_job_and_spares_its_neighbours(platform: FaultPlatform):
    """Rule 12: five claims in a row without progress, then one record that claims and fails."""
    neighbours = [f"neighbour-{n}" for n in range(3)]
    kills_before = platform.kills
    await platform.submit_plan("poison", says("never said", kill_after_s=0.4, delay_s=NEVER_S))
    for neighbour in neighbours:
        await platform.submit_plan(neighbour, calls(ONCE), says("done"))

    async def ended() -> bool:
        if not platform.fleet.running("executor"):
            await platform.fleet.start("executor")
        return (await platform.job("poison")).life.ended is not None

    await until(ended, within=600, why="the job is given up")
    await platform.until_ended(*neighbours)
    await platform.until_quiet()

    poison = await platform.job("poison")
    assert poison.life.error is not None and poison.life.error.code == "crash_loop"
    assert platform.kills - kills_before == 5
    last = [event.type for event in read_record((await platform.records("poison"))[-1].data)]
    assert last == ["job.claimed", "job.failed"]
    (letter,) = await platform.dead_letters()
    assert letter[h.DEAD_CODE] == "crash_loop"
    assert letter[h.DEAD_SUBJECT] in {"jobs.run.interactive.default", "jobs.run.interactive_backlog.default"}
    await platform.check("poison", *neighbours)
    for neighbour in neighbours:
        assert (await platform.job(neighbour)).life.status == "completed"


@pytest.mark.usefixtures("only_handed_back")
async def test_a_drained_executor_ends_its_model_call_and_hands_back(platform: FaultPlatform):
    """Rule 13: what the model said is recorded before the ticket goes, so nobody pays for it twice."""
    leaving = await platform.fleet.start("executor")
    await platform.submit_plan("drain-model", calls(ONCE, text="I will pay", hold="drain-model"), says("done"))
    await until_held(platform, "drain-model")
    staying = await platform.fleet.start("executor")

    leaving.drain()
    platform.holds["drain-model"].set()
    assert await leaving.ended() == 0
    await platform.until_ended("drain-model")
    await platform.until_quiet()

    assert [by(leaving) in name for name in await claims(platform, "drain-model")] == [True, False]
    assert by(staying) in (await claims(platform, "drain-model"))[1]
    await platform.check("drain-model")
    attempts = [attempt for attempt, _ in platform.chat.calls if attempt.startswith("default/drain-model/")]
    assert attempts == ["default/drain-model/1/m1", "default/drain-model/2/m1"]


@pytest.mark.usefixtures("only_handed_back")
async def test_a_job_handed_back_during_a_tool_call_joins_that_call(platform: FaultPlatform):
    """Rules 13 and 22: the call goes on in the registry; its key is asked for again, and it acts once."""
    leaving = await platform.fleet.start("executor")
    await platform.submit_plan("drain-tool", calls(SLOW), says("done"))
    key = "default/drain-tool/1/1"
    await until(lambda: platform.effects.has_begun("pay_once", key), within=60, why="the tool works")
    platform.slow.pause()
    leaving.drain()
    assert await leaving.ended() == 0
    assert platform.effects.count("pay_once", key) == 0
    await platform.fleet.start("executor")
    platform.slow.resume()
    await platform.until_ended("drain-tool")
    await platform.until_quiet()

    await platform.check("drain-tool")
    assert [by(leaving) in name for name in await claims(platform, "drain-tool")] == [True, False], story(
        await platform.records("drain-tool")
    )
    assert platform.effects.count("pay_once", key) == 1


@pytest.mark.usefixtures("only_handed_back")
async def test_a_second_sigterm_ends_an_executor_and_frees_its_job(platform: FaultPlatform):
    leaving = await platform.fleet.start("executor")
    await platform.submit_plan("hurry", says("never all of it", hold="hurry"))
    await until_held(platform, "hurry")

    leaving.drain()

    async def draining() -> bool:
        return (await platform.bus.js.consumer_info("RUN", "interactive")).num_waiting == 0

    await until(draining, within=60, why="it pulls no more")
    assert not leaving.exited
    leaving.drain()
    # The model still holds: nothing but the second signal can have ended it.
    assert await leaving.ended() == 0
    await platform.fleet.start("executor")
    await platform.until_ended("hurry")
    await platform.until_quiet()

    await platform.check("hurry")
    assert [attempt for attempt, _ in platform.chat.calls if "/hurry/" in attempt] == [
        "default/hurry/1/m1",
        "default/hurry/1/m2",
    ]
