"""Functions that block run on threads of their own, as many as are called."""

from __future__ import annotations

import asyncio
import sys
import threading
from contextvars import ContextVar

import pytest

from wayline.sdk.daemon_threads import DaemonThreads
from wayline.testkit import until

tenant: ContextVar[str] = ContextVar("tenant")


async def test_functions_run_beside_each_other_in_the_callers_context():
    threads, together = DaemonThreads(), threading.Barrier(20)
    tenant.set("acme")

    def work() -> str:
        together.wait(30)
        return tenant.get()

    assert await asyncio.gather(*(threads.run(work) for _ in range(20))) == ["acme"] * 20


@pytest.mark.parametrize(("error", "raised"), [(SystemExit(1), SystemExit), (StopIteration(), RuntimeError)])
async def test_what_a_function_raises_is_raised_to_its_caller(error: BaseException, raised: type[BaseException]):
    def work() -> None:
        raise error

    with pytest.raises(raised):
        await DaemonThreads().run(work)


async def test_a_function_that_nothing_waits_for_is_counted_until_its_end():
    threads, begun, go = DaemonThreads(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go.wait(30)

    running = asyncio.create_task(threads.run(work))
    await until(begun.is_set, why="it has begun")
    running.cancel()
    await asyncio.wait({running})
    counted = threads.abandoned
    go.set()

    await until(lambda: threads.abandoned == 0, why="it has ended")
    assert counted == 1


async def test_a_thread_never_keeps_the_process_from_its_end():
    program = (
        "import asyncio, threading\n"
        "from wayline.sdk.daemon_threads import DaemonThreads\n"
        "async def main():\n"
        "    begun = threading.Event()\n"
        "    running = asyncio.create_task(DaemonThreads().run(lambda: (begun.set(), threading.Event().wait())))\n"
        "    while not begun.is_set():\n"
        "        await asyncio.sleep(0)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program)

    assert await asyncio.wait_for(process.wait(), 60) == 0
