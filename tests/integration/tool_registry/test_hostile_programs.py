"""Tenants' programs that hang, crash, write nonsense or do not end: the call fails clearly, no other server notices."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from wayline.chassis.declare import declare
from wayline.chassis.stream_limits import Limits
from wayline.contracts.errors import Retry
from wayline.contracts.mcp_servers import EnableServer, ServerView, State
from wayline.contracts.tools import ListTools, ToolList
from wayline.testkit import until
from wayline.tool_registry.calls.running_calls import RunningCalls
from wayline.tool_registry.connection import program_streams
from wayline.tool_registry.tenant_servers.server_tries import TRIES_PER_TENANT_MAX

from .hostile import Hostile


@pytest.mark.parametrize(("mode", "code"), [("hang", "timeout"), ("crash", "unavailable")])
async def test_a_call_that_hangs_or_crashes_its_program_fails(platform, mode: str, code: str):
    bad = Hostile(platform, mode)
    await bad.start(retry_after_s=[], connect_timeout_s=5)
    await bad.connected("bad")

    reply = await bad.call("bad__act")

    assert (reply.status, reply.error.code if reply.error else None) == ("failed", code)
    await bad.works_again()
    await bad.neighbour_is_untouched()


async def test_nonsense_between_messages_is_passed_over(platform):
    bad = Hostile(platform, "garbage")
    await bad.start()
    await bad.connected("bad")

    replies = [await bad.call("bad__act", job=f"j{n}") for n in range(3)]

    assert [[int(reply.content)] for reply in replies] == [bad.pids("bad")] * 3
    await bad.neighbour_is_untouched()


@pytest.mark.slow
async def test_a_program_that_only_writes_nonsense_is_left(platform):
    bad = Hostile(platform, "flood")
    await bad.start(retry_after_s=[])
    await bad.connected("bad")

    reply = await bad.call("bad__act")

    assert reply.status == "failed"
    assert reply.error is not None
    assert "no MCP message" in reply.error.message
    await bad.works_again()
    await bad.neighbour_is_untouched()


async def test_a_line_of_fifty_megabytes_fails_its_call_alone(platform):
    bad = Hostile(platform, "line")
    await bad.start(retry_after_s=[])
    await bad.connected("bad")

    reply = await bad.call("bad__act")
    after = await bad.call("bad__look", job="j2")

    assert reply.error is not None
    assert "bytes, which are too many" in reply.error.message
    assert [int(after.content)] == bad.pids("bad")
    await bad.neighbour_is_untouched()


@pytest.mark.slow
async def test_a_line_without_end_is_cut_off(platform, monkeypatch):
    monkeypatch.setattr(program_streams, "LINE_MAX_BYTES", 10_000_000)
    bad = Hostile(platform, "endless")
    await bad.start(retry_after_s=[])
    await bad.connected("bad")

    reply = await bad.call("bad__act")

    assert reply.status == "failed"
    assert reply.error is not None
    assert "a line above 10000000 bytes" in reply.error.message
    await bad.works_again()
    await bad.neighbour_is_untouched()


async def test_a_program_that_never_answers_is_away_and_says_so(platform):
    bad = Hostile(platform, "silent")
    await bad.start(connect_timeout_s=0.5)

    async def is_away() -> bool:
        view = await bad.view("bad")
        return view.state is State.AWAY and "no connection within 0.5 s" in view.why

    await until(is_away, why="the program is away")
    reply = await bad.call("bad__act")

    assert (reply.status, reply.error.code if reply.error else None) == ("failed", "unavailable")
    await bad.neighbour_is_untouched()


async def test_a_program_that_has_not_answered_yet_is_connecting(platform):
    bad = Hostile(platform, "silent")
    await bad.start(connect_timeout_s=600)

    before = await bad.view("bad")
    ask = EnableServer(tenant=platform.tenant, name="bad", enabled=True)
    enabled = await platform.bus.ask(ask, ServerView)

    assert [(one.state, one.why) for one in (before, enabled)] == [(State.CONNECTING, "")] * 2
    await bad.neighbour_is_untouched()


async def test_a_program_deaf_to_signals_is_killed_with_its_children(platform):
    bad = Hostile(platform, "deaf")
    await bad.start()
    await bad.connected("bad")
    await until(lambda: len(bad.pids("bad")) == 2, why="the program has a child")

    await platform.bus.ask(EnableServer(tenant=platform.tenant, name="bad", enabled=False), ServerView)

    await bad.gone("bad")
    await bad.neighbour_is_untouched()


async def test_tools_that_change_can_be_called_once_approved(platform):
    bad = Hostile(platform, "changing")
    await bad.start()
    await bad.connected("bad")
    before = await names(platform)

    await bad.call("bad__act")

    async def is_held() -> bool:
        return (await bad.view("bad")).quarantined == 1

    await until(is_held, why="the new tool waits for approval")
    old, new = await bad.call("bad__act", job="j2"), await bad.call("bad__new", job="j3")
    await bad.approve()

    async def is_listed() -> bool:
        return await names(platform) == {"bad__look", "bad__new"}

    await until(is_listed, why="the approved tool is listed")
    approved = await bad.call("bad__new", job="j4")
    assert before == {"bad__look", "bad__act"}
    assert old.error is not None and new.error is not None
    assert (old.error.code, new.error.code, approved.status) == ("unknown_tool", "refused", "success")
    await bad.neighbour_is_untouched()


@pytest.mark.slow
async def test_a_server_of_a_thousand_tools_is_listed_and_called(platform):
    # Their list is larger than a message.
    async for _ in declare(platform.bus.js, Limits(memory=True)):
        pass
    bad = Hostile(platform, "many")
    await bad.start()
    await bad.connected("bad")

    reply = await bad.call("bad__tool_997")

    assert (len(await names(platform)), reply.status) == (1_000, "success")
    await bad.neighbour_is_untouched()


async def test_calls_that_hang_leave_slots_to_other_servers(platform):
    bad = Hostile(platform, "stuck")
    # A program that hangs in a call answers no probe either, and would be started anew.
    await bad.start(calls_max=8, calls_per_server_max=4, probe_every_s=3_600)
    await bad.connected("bad")
    stuck = [asyncio.create_task(bad.call("bad__act", job=f"stuck-{n}")) for n in range(4)]
    running = next(part for part in bad.registry.service.parts if isinstance(part, RunningCalls))._running
    await until(lambda: sum(one.server is not None for one in running.values()) == 4, why="the calls hang")

    with pytest.raises(Retry, match="4 calls of 'bad' run already"):
        await platform.once(platform.ask("bad__act", job="one-more"))

    assert (await bad.call("good__look")).status == "success"
    for task in stuck:
        task.cancel()
    await bad.neighbour_is_untouched()


async def test_tries_that_hang_leave_room_to_other_tenants(platform):
    bad = Hostile(platform, "good")
    await bad.start(try_timeout_s=600)
    hung = [f"hung-{n}" for n in range(TRIES_PER_TENANT_MAX)]
    tries = [asyncio.create_task(bad.tried(name, "silent")) for name in hung]
    await until(lambda: all(map(bad.pids, hung)), why="all of them hang")

    with pytest.raises(Retry, match="4 servers of this tenant are being tried") as refused:
        await bad.tried("one-more", "good")
    started = bad.pids("one-more")
    elsewhere = await bad.tried("elsewhere", "good", tenant="another")
    for name in hung:
        os.kill(bad.pids(name)[0], signal.SIGKILL)
    ended = await asyncio.gather(*tries)
    after = await bad.tried("one-more", "good")

    assert (refused.value.status, started) == (429, [])
    assert [report.why for report in ended] == ["the program was ended by SIGKILL"] * len(hung)
    assert (elsewhere.ok, after.ok) == (True, True)
    await bad.neighbour_is_untouched()


async def test_a_server_saved_while_calls_run_disturbs_none(platform):
    bad = Hostile(platform, "good")
    await bad.start()
    await bad.connected("bad")
    calls = [
        asyncio.create_task(platform.call(platform.ask(tool, job=f"{tool}-{n}")))
        for n in range(50)
        for tool in ("effects__look_read", "good__look")
    ]

    await bad.save("late", "good")
    await bad.connected("late")
    late = await bad.call("late__look", job="late")

    assert {reply.status for reply in await asyncio.gather(*calls)} == {"success"}
    assert [int(late.content)] == bad.pids("late")
    await bad.neighbour_is_untouched()


async def names(platform) -> set[str]:
    """Return the tools of the program that misbehaves."""
    listed = await platform.bus.ask(ListTools(tenant=platform.tenant, patterns=("bad__*",)), ToolList, timeout_s=10)
    return {tool.name for tool in listed.tools}
