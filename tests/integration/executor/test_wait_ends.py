"""The ends of waits are scheduled before a job parks, and withdrawn once they mean nothing; none is pushed out."""

from __future__ import annotations

import orjson

from wayline.contracts import events as e
from wayline.contracts.tools import CallTool, ToolReply
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.testkit import until

from .conftest import ExecutorPlatform
from .test_late_intents import ANSWERED, LOOKS, offer

ASKS_TWICE = turns(Say(tools=(("look", {"at": 1}),)), Say(tools=(("look", {"at": 2}),)), Say(text="seen"))


async def scheduled(platform: ExecutorPlatform) -> set[str]:
    """Return the waits whose ends the bus keeps."""
    request = orjson.dumps({"subjects_filter": "later.>"})
    info = await platform.bus.request("$JS.API.STREAM.INFO.LATER", request, timeout_s=5)
    return {subject.rpartition(".")[2] for subject in orjson.loads(info.data)["state"].get("subjects") or {}}


async def approve(platform: ExecutorPlatform, job_id: str) -> str:
    """Approve the call for which a job waits, and return the wait's id."""
    [asked] = (await platform.wait_until_parked(job_id)).tools.pending
    await platform.decide(job_id, asked.approval_id)
    await platform.wake(job_id)
    return asked.approval_id


async def seen(_: CallTool) -> ToolReply:
    return ANSWERED


async def test_the_end_of_a_wait_is_withdrawn_once_it_is_over(platform: ExecutorPlatform):
    await offer(platform, seen, ask="always")
    async with ChatServer(ASKS_TWICE) as chat:
        await platform.executor(chat)
        await platform.begin("asks", config=LOOKS)

        first = await approve(platform, "asks")
        await platform.until_parked("asks", times=2)
        [second] = (await platform.wait_until_parked("asks")).tools.pending
        await until(lambda: only(platform, second.approval_id), why=f"{first} is withdrawn, and the other is not")

        await approve(platform, "asks")
        await platform.wait_for("asks")
        await until(lambda: only(platform), why="the job has ended")


async def only(platform: ExecutorPlatform, *waits: str) -> bool:
    return await scheduled(platform) == set(waits)


async def test_a_nearly_full_stream_keeps_its_oldest_end_of_wait(platform: ExecutorPlatform):
    config = (await platform.bus.js.stream_info("LATER")).config
    await platform.bus.js.update_stream(config.evolve(max_bytes=100_000))
    headers = {"Nats-Schedule": "@at 2099-01-01T00:00:00Z", "Nats-Schedule-Target": "due.acme.old.w1"}
    for n in range(95):
        await platform.bus.js.publish(f"later.acme.old.w{n}", b"x" * 900, headers=headers)
    before = await scheduled(platform)
    await offer(platform, seen, ask="always")
    async with ChatServer(ASKS_TWICE) as chat:
        await platform.executor(chat)
        await platform.begin("asks", config=LOOKS)

        async def given_back() -> bool:
            return bool(await platform.events_of("asks", e.JobHandedBack))

        await until(given_back, why="the job is given back: its wait has no end")

    [handed_back] = await platform.events_of("asks", e.JobHandedBack)
    assert "LATER" in handed_back.reason
    assert (await scheduled(platform), len(before)) == (before, 95)
    assert not await platform.events_of("asks", e.JobParked)
