"""What a thousand followers of jobs and two hundred of all jobs cost one gateway, and how soon they are told.

python -m tests.bench.event_streams [--write docs/performance.md]

The clients share a process with the writer of the logs, on the same machine: their own work is part of the delay.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from wayline.chassis import Bus
from wayline.embedded.ports import free_port
from wayline.testkit import until
from wayline.testkit.platform import QUICK

from ..integration.gateway.story import Story
from . import page
from .speed.load import percentile
from .tool_platform import tool_platform

JOBS, JOB_CLIENTS, TENANT_CLIENTS, SILENT = 100, 1_000, 200, 10
ROUNDS, RECORDS_A_SECOND = 4, 20
TOLD_WITHIN_S = 120
_JOB, _SEQ = re.compile(rb'"job_id":"([^"]+)"'), re.compile(rb'"seq":(\d+)')


@dataclass
class Told:
    """When events were written, and how long afterwards clients were told."""

    written: dict[tuple[str, int], float] = field(default_factory=dict)
    job_ms: list[float] = field(default_factory=list)
    tenant_ms: list[float] = field(default_factory=list)
    following: int = 0


@dataclass(frozen=True)
class Measured:
    """What one gateway needed, and how soon it told its clients."""

    told: Told
    memory_before_mib: float = 0.0
    memory_after_mib: float = 0.0
    load: float = 0.0


async def follow(url: str, path: str, told: Told, delays_ms: list[float], *, silent: bool = False) -> None:
    """Read one stream until its end, and note how long after its writing each event comes; or never read it."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port, limit=2**20)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {place.netloc}\r\nAccept: text/event-stream\r\n\r\n".encode())
        assert b" 200 " in await reader.readline()
        if not path.startswith("/v1/events"):
            # What is written meanwhile is in the job's log.
            told.following += 1
        if silent:
            told.following += 1
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            await asyncio.Event().wait()
        if path.startswith("/v1/events"):
            await reader.readuntil(b"id: ")
            told.following += 1
        async for line in reader:
            job, seq = (_JOB.search(line), _SEQ.search(line)) if line.startswith(b"data: ") else (None, None)
            if job is None or seq is None:
                continue
            key = job[1].decode(), int(seq[1])
            if (at := told.written.get(key)) is not None:
                delays_ms.append((time.perf_counter() - at) * 1_000)
    finally:
        writer.close()


async def tell(
    bus: Bus, url: str, *, jobs: int, job_clients: int, tenant_clients: int, silent: int, rounds: int, pause_s: float
) -> Told:
    """Let clients follow, write to all jobs in rounds, and wait until every client that reads was told everything."""
    told, stories = Told(), [Story(bus, "default", f"followed-{number}") for number in range(jobs)]
    for story in stories:
        await story.begin()
        await story.claim()
    clients = [
        follow(url, f"/v1/jobs/followed-{number % jobs}/events?after=3", told, told.job_ms)
        for number in range(job_clients)
    ]
    clients += [
        follow(url, "/v1/events", told, told.tenant_ms, silent=number < silent) for number in range(tenant_clients)
    ]
    tasks = [asyncio.create_task(client) for client in clients]
    try:
        await until(lambda: told.following == len(clients), within=TOLD_WITHIN_S, why="all clients follow")
        for _ in range(rounds):
            for story in stories:
                assert story.head is not None
                seq, at = story.head.seq, time.perf_counter()
                told.written |= {(story.job_id, seq + 1): at, (story.job_id, seq + 2): at}
                await story.think()
                await asyncio.sleep(pause_s)
        events = 2 * rounds * jobs
        wanted = events * job_clients // jobs, events * (tenant_clients - silent)
        await until(
            lambda: (len(told.job_ms), len(told.tenant_ms)) == wanted, within=TOLD_WITHIN_S, why="all are told of all"
        )
    finally:
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
    return told


async def measure(home: Path) -> Measured:
    """Start a gateway as a process of its own, and let it tell all clients."""
    load = os.getloadavg()[0]
    async with tool_platform(home, limits=QUICK) as platform:
        port = free_port()
        fleet = await platform.make_fleet(home, "gateway")
        # All of them are without a key here.
        fleet.set("gateway", WAYLINE_HTTP_PORT=str(port), WAYLINE_GATEWAY_STREAMS_PER_KEY_MAX="2000")
        gateway = await fleet.start("gateway")
        before = _memory_mib(gateway.pid)
        told = await tell(
            platform.bus,
            f"http://127.0.0.1:{port}",
            jobs=JOBS,
            job_clients=JOB_CLIENTS,
            tenant_clients=TENANT_CLIENTS,
            silent=SILENT,
            rounds=ROUNDS,
            pause_s=1 / RECORDS_A_SECOND,
        )
        return Measured(told, before, _memory_mib(gateway.pid), load)


def _memory_mib(pid: int) -> float:
    """Return the most memory that a process had so far."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def report(measured: Measured) -> str:
    """Return the table."""
    told = measured.told
    load = page.machine(measured.load)
    lines = [
        [name, f"{clients:,}", f"{len(delays):,}", *(f"{percentile(delays, share):.0f}" for share in (0.5, 0.99))]
        for name, clients, delays in (
            ("of a job", JOB_CLIENTS, told.job_ms),
            (f"of all jobs, {SILENT} of them never reading", TENANT_CLIENTS, told.tenant_ms),
        )
    ]
    head = ["followers", "clients", "events told", "told after, ms p50", "p99"]
    memory = f"{measured.memory_before_mib:.0f} MiB at its start, {measured.memory_after_mib:.0f} MiB at most"
    return f"{load}\n\n{page.table(head, lines)}\nMemory of the gateway: {memory}.\n"


def main() -> None:
    """Measure, print, and write where asked."""
    parser = argparse.ArgumentParser(description="What followers cost a gateway.")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        # Postgres runs as another user where we are root.
        home.chmod(0o711)
        text = report(asyncio.run(measure(home)))
    if asked.write:
        page.write(asked.write, "event_streams", text)
    print(text)


if __name__ == "__main__":
    main()
