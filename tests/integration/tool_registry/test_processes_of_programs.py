"""A registry in a process of its own, as it runs for users: it notices how programs end, and leaves none behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import pytest

from wayline.contracts.mcp_servers import DeleteServer, ServerDeleted, State
from wayline.testkit import until
from wayline.testkit.walks import cases

from .hostile import UNCONFINED, Hostile

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends what has left the group of its program")
PATIENT = {**UNCONFINED, "retry_after_s": [], "probe_every_s": 600, "try_timeout_s": 600}


async def test_a_program_that_exits_at_its_start_is_reported(platform):
    bad = Hostile(platform, "exit")
    await platform.forked(**PATIENT)

    report = await bad.tried("bad", "exit")

    assert (report.ok, report.why, report.errors) == (False, "the program ended with status 3", "no configuration")


async def test_a_program_that_exits_at_its_start_is_away(platform):
    bad = Hostile(platform, "exit")
    await platform.forked(**PATIENT)
    await bad.save("bad", "exit")

    async def is_away() -> bool:
        view = await bad.view("bad")
        return (view.state, view.why) == (State.AWAY, "the program ended with status 3")

    await until(is_away, why="the program is away")


async def test_a_call_fails_once_its_program_is_killed(platform):
    bad = Hostile(platform, "stuck")
    await platform.forked(**PATIENT)
    await bad.save("bad", "stuck")
    await bad.connected("bad")
    calling = asyncio.create_task(bad.call("bad__act"))
    await until(lambda: "act" in bad.begun("bad"), why="the call has reached the program")

    os.kill(bad.pids("bad")[0], signal.SIGKILL)

    async with asyncio.timeout(20):
        reply = await calling
    assert reply.error is not None
    assert "the program was ended by SIGKILL" in reply.error.message


async def test_a_killed_program_is_started_again_without_a_call(platform):
    bad = Hostile(platform, "good")
    await platform.forked(**PATIENT)
    await bad.save("bad", "good")
    await bad.connected("bad")

    os.kill(bad.pids("bad")[0], signal.SIGKILL)

    await until(lambda: len(bad.pids("bad")) == 2, why="the program runs again")
    await bad.connected("bad")


@linux
async def test_a_detached_child_ends_when_its_server_was_tried(platform):
    bad = Hostile(platform, "detached")
    await platform.forked(**PATIENT)

    report = await bad.tried("bad", "detached")

    assert (report.ok, len(bad.pids("bad"))) == (True, 2)
    await bad.gone("bad")


@linux
async def test_a_detached_child_ends_when_its_server_is_removed(platform):
    bad = Hostile(platform, "detached")
    await platform.forked(**PATIENT)
    await bad.save("bad", "detached")
    await bad.connected("bad")
    await until(lambda: len(bad.pids("bad")) == 2, why="the program and its child run")

    await platform.bus.ask(DeleteServer(tenant=platform.tenant, name="bad"), ServerDeleted)

    await bad.gone("bad")


@linux
@pytest.mark.parametrize(("mode", "processes"), cases([("deaf alone", 1), ("deaf", 2), ("detached", 2)]))
async def test_a_killed_registry_leaves_no_program(platform, mode: str, processes: int):
    bad = Hostile(platform, mode)
    process = await platform.forked(**PATIENT)
    await bad.save("bad", mode)
    await bad.connected("bad")
    await until(lambda: len(bad.pids("bad")) == processes, why="the program and its child run")

    process.kill()
    await process.ended()

    await bad.gone("bad")
