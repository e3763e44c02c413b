"""A service on the bus whose tool is counted, and which kills itself at a moment of its first call.

The environment names the service, the bus, the file with a line for each effect, and the moment.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from pathlib import Path

from wayline.sdk import Call, Tools

BUSY_MAX_S = 0.1
"""How long the tool takes before and after its effect: a kill from outside falls into any part of it."""

service, file, moment = (os.environ[name] for name in ("SERVICE", "EFFECTS", "DIES_WHEN"))
tools = Tools(service)


@tools.tool(effect="once", timeout_s=60)
async def pay(call: Call) -> str:
    """Pay."""
    if moment == "before":
        die()
    await asyncio.sleep(random.uniform(0, BUSY_MAX_S))
    note(call.key)
    if moment == "acting":
        die()
    if moment == "slow":
        await asyncio.sleep(2)
    await asyncio.sleep(random.uniform(0, BUSY_MAX_S))
    loop = asyncio.get_running_loop()
    if moment == "acted":
        # Runs before the client writes to its socket: the answer is made and no byte of it leaves.
        loop.call_soon(die)
    if moment == "answered":
        loop.call_later(0.1, die)
    return "paid"


def note(key: str) -> None:
    """Act: from here on it has happened, whatever becomes of this process."""
    with Path(file).open("a") as lines:
        lines.write(f"{key}\n")
        lines.flush()
        os.fsync(lines.fileno())


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


tools.run()
