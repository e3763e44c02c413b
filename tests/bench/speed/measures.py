"""What is measured, one function each; every number comes with how it was got."""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from wayline.chassis.topology import EVENTS_TRACING, TELEMETRY_TRACING
from wayline.contracts.events import JobClaimed
from wayline.embedded import free_port
from wayline.journal import JobLog

from .bench_platform import BenchPlatform, Process, get
from .load import ENGINES, FLOOR, OURS, USUAL_WORK, Client, Work, percentile

ALONE_S = 3.0
SLICES, SLICE_S, RAMP_S = 4, 3.0, 1.0
IN_FLIGHT = 64
THINKING_MS, P50_MAX_MS = 200, 900.0
LEVEL_S = 5.0
LEVEL_FIRST, LEVEL_MAX = 16, 1_024
PLACES, LEVEL_ROUNDS = (1.0, 1.3, 1.6, 1.9), 4
CROWD, CROWD_MODEL_MS = 1_000, 12_000
RECOVERY_JOBS, RECOVERY_MODEL_MS = 20, 1_000
SPANS_LEAVE_S = 1.2
"""Longer than a span exporter holds a batch: nothing new for so long means that all is stored."""
OUTSIDE = ("model server", "floor")


@dataclass(frozen=True)
class Alone:
    p50_ms: float
    p99_ms: float
    claimed_p50_ms: float = 0.0
    """From just before the submission is sent until the time of the job's claim, by its event; of ours alone."""
    claimed_p99_ms: float = 0.0


async def alone(platform: BenchPlatform, client: Client, engine: str) -> Alone:
    """One job at a time, the model answering at once: all the time there is, is the engine's own."""
    load = await client.keep(engine, 1, seconds=ALONE_S)
    whole = Alone(load.percentile(0.5), load.percentile(0.99))
    if engine == FLOOR:
        return whole
    waits_ms = []
    for job_id, published in load.published.items():
        first, *_ = await _claims(platform, job_id)
        waits_ms.append((first.at - published).total_seconds() * 1_000)
    return replace(whole, claimed_p50_ms=percentile(waits_ms, 0.5), claimed_p99_ms=percentile(waits_ms, 0.99))


@dataclass(frozen=True)
class Sustained:
    jobs_per_s: float
    cpu_ms: dict[str, float] = field(default_factory=dict)
    """CPU per job by process; without the client and the model server, which both engines need alike."""
    caught_up_s: float = 0.0
    """How long after the last result everything was in the tracing tables."""

    @property
    def total_cpu_ms(self) -> float:
        return sum(self.cpu_ms.values())


async def sustained(platform: BenchPlatform, client: Client) -> dict[str, Sustained]:
    """By engine: 64 jobs in flight; the CPU counts until the last span of the last job is stored.

    A few seconds of each in turn, and the mean of them: the machine may be half as fast from one minute to the next.
    """
    slices: dict[str, list[Sustained]] = {engine: [] for engine in ENGINES}
    for _ in range(SLICES):
        for engine in ENGINES:
            slices[engine].append(await slice_of(platform, client, engine))
    return {engine: _mean(found) for engine, found in slices.items()}


async def slice_of(platform: BenchPlatform, client: Client, engine: str, *, work: Work = USUAL_WORK) -> Sustained:
    """Keep jobs in flight for some seconds; the CPU counts until the last span of the last job is stored."""
    before = platform.cpu_ms()
    load = await client.keep(engine, IN_FLIGHT, seconds=SLICE_S, work=work)
    ended = time.perf_counter()
    told = await _told(platform) if engine == OURS else ended
    after, jobs = platform.cpu_ms(), len(load.done_at)
    mine = [FLOOR, "nats"] if engine == FLOOR else [name for name in after if name not in OUTSIDE]
    cpu = {name: (after[name] - before.get(name, 0)) / jobs for name in mine}
    return Sustained(load.rate(RAMP_S), cpu, max(0.0, told - ended))


def _mean(slices: Sequence[Sustained]) -> Sustained:
    return Sustained(
        statistics.mean(one.jobs_per_s for one in slices),
        {name: statistics.mean(one.cpu_ms[name] for one in slices) for name in slices[0].cpu_ms},
        statistics.mean(one.caught_up_s for one in slices),
    )


async def _told(platform: BenchPlatform) -> float:
    """Wait until tracing has stored all there is; return when it had, not when that was certain."""
    seen: tuple[int, ...] = ()
    quiet_since = time.perf_counter()
    while time.perf_counter() - quiet_since < SPANS_LEAVE_S:
        infos = [await platform.bus.js.consumer_info(c.stream, c.name) for c in (EVENTS_TRACING, TELEMETRY_TRACING)]
        stored = tuple(info.ack_floor.stream_seq if info.ack_floor else 0 for info in infos)
        if stored != seen or any((info.num_pending or 0) + (info.num_ack_pending or 0) for info in infos):
            seen, quiet_since = stored, time.perf_counter()
        await asyncio.sleep(0.05)
    return quiet_since


async def most_in_flight(client: Client, before: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """By engine: how many jobs it takes at once until half of them need more than 900 ms for 600 ms of thinking.

    Between the last power of two that it holds and the first that it does not, both engines are measured in turn at the
    same few places, and a straight line through what they needed says where 900 ms are: what else the machine does for
    a few seconds then moves neither far, nor one without the other. What rounds before have found says where to begin.
    """

    async def p50_ms(engine: str, level: int) -> float:
        load = await client.keep(engine, level, seconds=LEVEL_S, model_ms=THINKING_MS)
        return load.percentile(0.5)

    held = {engine: _level_below(before[engine]) for engine in ENGINES}
    for engine in ENGINES:
        while held[engine] < LEVEL_MAX and await p50_ms(engine, held[engine] * 2) <= P50_MAX_MS:
            held[engine] *= 2
    points: dict[str, list[tuple[int, float]]] = {engine: [] for engine in ENGINES}
    for share in PLACES * LEVEL_ROUNDS:
        for engine, level in held.items():
            at = round(level * share)
            points[engine].append((at, await p50_ms(engine, at)))
    return {engine: round(_crossing(found)) for engine, found in points.items()}


def _level_below(found: Sequence[int]) -> int:
    """A power of two that is surely held: half of what was, or less."""
    return max(LEVEL_FIRST, 1 << (found[-1] // 2).bit_length() - 1) if found else LEVEL_FIRST


def _crossing(points: list[tuple[int, float]]) -> float:
    """Where the least-squares line through (jobs in flight, p50) meets the bound, within the measured levels."""
    line = statistics.linear_regression(*zip(*points, strict=True))
    levels = [level for level, _ in points]
    if line.slope <= 0:
        return max(levels)
    return min(max((P50_MAX_MS - line.intercept) / line.slope, min(levels)), max(levels))


@dataclass(frozen=True)
class Memory:
    idle_mb: float
    crowded_mb: float

    @property
    def per_thousand_mb(self) -> float:
        return (self.crowded_mb - self.idle_mb) * 1_000 / CROWD


async def memory(platform: BenchPlatform, client: Client, engine: str) -> Memory:
    """A fresh process, a few jobs to warm it, then 1,000 jobs that all wait for their first model call."""
    name = FLOOR if engine == FLOOR else "executor"
    port = urlsplit(platform.model_url).port
    assert port is not None
    await platform.restart(name)
    await client.keep(engine, 8, seconds=1.0)
    if others := await _open_requests(port):
        raise SystemExit(f"{others} model calls of other jobs would be counted as this crowd's")
    idle = platform.rss_mb(name)
    waiting = [(await client.submit(engine, model_ms=CROWD_MODEL_MS))[1] for _ in range(CROWD)]
    deadline = time.perf_counter() + CROWD_MODEL_MS / 1_000
    held = 0
    while held < CROWD and time.perf_counter() < deadline:
        await asyncio.sleep(0.1)
        held = await _open_requests(port)
    crowded = platform.rss_mb(name)
    if held < CROWD * 0.99:
        print(f"    only {held} of {CROWD} jobs were in flight at once for {engine}", flush=True)
    await asyncio.wait_for(asyncio.gather(*waiting), 180)
    return Memory(idle, crowded)


async def _open_requests(port: int) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /open HTTP/1.0\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return int(answer.rpartition(b"\r\n\r\n")[2])


@dataclass(frozen=True)
class Recovery:
    orphans: int
    taken_over_s: float
    """From kill -9 until the last of the dead executor's jobs was claimed by the other one."""
    done_s: float
    """… and until its last job was done."""


async def recovery(platform: BenchPlatform, client: Client) -> Recovery:
    """kill -9 one of two executors in the middle of model calls."""
    victim = platform.processes["executor"]
    other = await platform.start("executor", name="executor 2")
    jobs = [await client.submit(OURS, model_ms=RECOVERY_MODEL_MS) for _ in range(RECOVERY_JOBS)]
    await asyncio.sleep(RECOVERY_MODEL_MS * 1.5 / 1_000)
    killed, clock = datetime.now(UTC), time.perf_counter()
    await victim.kill()
    await asyncio.gather(*(waiter for _, waiter in jobs))
    done_s = time.perf_counter() - clock
    claims = [await _claims(platform, job_id) for job_id, _ in jobs]
    taken = [(claim.at - killed).total_seconds() for _, *later in claims for claim in later[:1]]
    await platform.start("executor")
    await other.stop()
    return Recovery(len(taken), max(taken, default=0.0), done_s)


async def _claims(platform: BenchPlatform, job_id: str) -> list[JobClaimed]:
    return [event async for event in JobLog(platform.bus, "default", job_id).read() if isinstance(event, JobClaimed)]


async def up_boot_s(root: Path) -> float | None:
    """`wayline up` on an initialised data directory, until the gateway is ready; None where it does not start."""
    port = free_port()
    env = {"WAYLINE_DATA_DIR": str(root / "up"), "WAYLINE_HTTP_PORT": str(port), "WAYLINE_NATS_PORT": str(free_port())}
    env["WAYLINE_CONSOLE"] = "false"
    seconds = 0.0
    for _ in ("initialise", "measure"):
        started = time.perf_counter()
        with (root / "up.log").open("ab") as log:
            child = await asyncio.create_subprocess_exec(
                str(Path(sys.executable).parent / "wayline"), "up", env={**os.environ, **env}, stdout=log, stderr=log
            )
        process = Process("up", child)
        try:
            while not await _answers(port):
                if child.returncode is not None or time.perf_counter() - started > 120:
                    print(
                        f"    wayline up ended with {child.returncode}: {(root / 'up.log').read_text()[-500:]}",
                        flush=True,
                    )
                    return None
                await asyncio.sleep(0.02)
            seconds = time.perf_counter() - started
        finally:
            await process.stop()
    return seconds


async def _answers(port: int) -> bool:
    try:
        return await get(port, "/health/ready") == 200
    except OSError:
        return False
