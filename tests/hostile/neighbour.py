"""The other tenant as a process of its own, so that what the hostile servers do to this one is not counted.

`python -m tests.hostile.neighbour` calls a tool without a pause, and writes a line of JSON for each call.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from wayline.chassis import Bus, BusSettings
from wayline.testkit import until

from .attack import Victim, percentile

TOOL = "effects__pay_once"


@dataclass(frozen=True)
class Call:
    """One call: when it began and ended, on the clock that all processes share, and what came of it."""

    began_s: float
    ended_s: float
    status: str

    @property
    def took_ms(self) -> float:
        return (self.ended_s - self.began_s) * 1_000


@dataclass
class Calls:
    """The calls of the other tenant so far."""

    made: list[Call] = field(default_factory=list)

    def since(self, began_s: float) -> list[Call]:
        """Return the calls that were under way at a time or later."""
        return [call for call in self.made if call.ended_s >= began_s]

    def p99_ms(self, since_s: float) -> float:
        """Return the p99 of the calls that were under way at a time or later."""
        return percentile([call.took_ms for call in self.since(since_s)], 0.99)

    def counted(self, status: str) -> int:
        """Return how many calls ended so."""
        return sum(call.status == status for call in self.made)


@asynccontextmanager
async def at_work(settings: BusSettings, tenant: str) -> AsyncIterator[Calls]:
    """Let another tenant call without a pause, and yield its calls as they are made."""
    seed = settings.nats_seed or ""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.hostile.neighbour", settings.nats_url, tenant),
        env={**os.environ, "WAYLINE_NEIGHBOUR_SEED": seed},
        stdout=asyncio.subprocess.PIPE,
    )
    calls = Calls()
    heard = asyncio.create_task(_hear(process, calls), name="the other tenant")
    try:
        await until(lambda: bool(calls.made), within=60, why="the other tenant is at work")
        yield calls
    finally:
        process.terminate()
        await process.wait()
        await heard


async def _hear(process: asyncio.subprocess.Process, calls: Calls) -> None:
    assert process.stdout is not None
    async for line in process.stdout:
        if line.endswith(b"\n"):
            calls.made.append(Call(**json.loads(line)))


async def _work(url: str, tenant: str) -> None:
    settings = BusSettings(nats_url=url, nats_seed=os.environ["WAYLINE_NEIGHBOUR_SEED"], nats_accounts=False)
    bus = await Bus.connect(settings, service="test", exit_when_closed=False)
    victim = Victim(bus, tenant, TOOL)
    while True:
        began_s = time.monotonic()
        status = await victim.call()
        print(json.dumps({"began_s": began_s, "ended_s": time.monotonic(), "status": status}), flush=True)


if __name__ == "__main__":
    asyncio.run(_work(*sys.argv[1:]))
