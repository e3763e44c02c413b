"""Worker processes end with their turn, and with their host."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from wayline.sandbox import Limits, Sandbox, Suspended
from wayline.testkit import until

from .programs import program

SPIN = "while True: pass"
HOST = """
    import asyncio
    from datetime import UTC, datetime
    from wayline.sandbox import Limits, Program, Sandbox, make_stubs

    async def main():
        stubs, now = make_stubs([]), datetime(2026, 1, 1, tzinfo=UTC)
        async with Sandbox(limits=Limits(execution_s_max=2.0)) as sandbox:
            await asyncio.gather(*(sandbox.start(Program("while True: pass", stubs, now, "seed")) for _ in range(3)))

    asyncio.run(main())
"""


def children(pid: int) -> set[int]:
    """Return the worker processes of a host."""
    found = set()
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (directory / "stat").read_text().partition(") ")
        except OSError:
            continue
        state, parent = rest.split()[:2]
        if int(parent) == pid and state != "Z" and name.endswith("(monty"):
            found.add(int(directory.name))
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


async def test_a_suspended_program_has_no_process(sandbox: Sandbox):
    waiting = [await sandbox.start(program("await fetch(url='a')")) for _ in range(20)]

    assert all(isinstance(turn, Suspended) for turn in waiting)
    await until(lambda: not children(os.getpid()), why="a worker is left")


async def test_a_cancelled_turn_ends_its_process():
    async with Sandbox(limits=Limits(execution_s_max=60)) as sandbox:
        turn = asyncio.create_task(sandbox.start(program(SPIN)))
        await until(lambda: children(os.getpid()), why="the program runs")

        turn.cancel()
        await asyncio.gather(turn, return_exceptions=True)

        await until(lambda: not children(os.getpid()), why="its worker ends")


@pytest.mark.slow
async def test_a_turn_cancelled_while_its_worker_starts_leaves_no_process():
    async with Sandbox(limits=Limits(execution_s_max=60)) as sandbox:
        for _ in range(30):
            turn = asyncio.create_task(sandbox.start(program(SPIN)))
            while not children(os.getpid()):  # noqa: ASYNC110 -- at its very first moment, which no event tells
                await asyncio.sleep(0)
            turn.cancel()
            await asyncio.gather(turn, return_exceptions=True)

            await until(lambda: not children(os.getpid()), why="its worker ends")


async def test_no_process_is_left_after_close():
    sandbox = Sandbox(limits=Limits(execution_s_max=60))
    turn = asyncio.create_task(sandbox.start(program(SPIN)))
    await until(lambda: children(os.getpid()), why="the program runs")

    await sandbox.close()
    await sandbox.close()

    await asyncio.gather(turn, return_exceptions=True)
    assert children(os.getpid()) == set()


async def test_no_process_is_left_after_a_kill_of_the_host():
    host = await asyncio.create_subprocess_exec(sys.executable, "-c", dedent(HOST))
    await until(lambda: len(children(host.pid)) == 3, why="three programs run")
    workers = children(host.pid)

    host.send_signal(signal.SIGKILL)
    await host.wait()

    await until(lambda: not any(map(alive, workers)), why="the workers end")
