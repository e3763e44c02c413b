"""Which signals end a process of ours."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

HEARS = """
import asyncio, os, signal
from wayline.standalone.launch.stopping import Stopping

async def main():
    stopping = Stopping()
    stopping.listen()
    os.kill(os.getpid(), signal.SIGHUP)
    os.kill(os.getpid(), signal.SIGUSR1)
    await done.wait()
    print("asked to end" if stopping.asked.is_set() else "goes on")

done = asyncio.Event()
loop = asyncio.new_event_loop()
loop.add_signal_handler(signal.SIGUSR1, done.set)
loop.run_until_complete(main())
"""


@pytest.mark.parametrize(("handler", "expected"), [(signal.SIG_IGN, "goes on"), (signal.SIG_DFL, "asked to end")])
def test_a_closed_terminal_ends_it_unless_nohup_has_it_ignored(handler: signal.Handlers, expected: str):
    before = signal.signal(signal.SIGHUP, handler)
    try:
        done = subprocess.run([sys.executable, "-c", HEARS], capture_output=True, text=True, check=True)
    finally:
        signal.signal(signal.SIGHUP, before)

    assert done.stdout == f"{expected}\n"
