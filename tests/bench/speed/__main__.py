"""How fast Wayline is, against a floor that makes the same durable writes and model calls and nothing else.

    python -m tests.bench.speed [--rounds 3] [--only load,inputs,…] [--input-chars 20,…] [--write docs/performance.md]
                                 [--record-baseline]

Everything runs on this machine in a directory that is removed afterwards. Other work on the machine makes the absolute
numbers worse; the ratios and the CPU per job hold.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import uvloop

from .. import page
from . import baseline, cold, inputs, measures, model_call
from .bench_platform import BenchPlatform, set_up, start_all
from .load import ENGINES, OURS, Client
from .report import Results, report

ROOT = Path(__file__).parents[3]
PARTS = ("load", "inputs", "model", "most", "memory", "recovery", "cold", "up")


def say(text: str) -> None:
    print(text, flush=True)


async def run(parts: set[str], rounds: int, input_chars: Sequence[int]) -> Results:
    results = Results(load_before=os.getloadavg()[0])
    root = _own_directory()
    try:
        async with AsyncExitStack() as stack:
            say("Starting the servers and one process a service ...")
            platform = await set_up(root, stack)
            await start_all(platform)
            results.boot_s = {process.name: process.boot_s for process in platform.processes.values()}
            client = await stack.enter_async_context(Client.connect(platform.nats.url))
            await _measure(platform, client, results, parts=parts, rounds=rounds, input_chars=input_chars)
        if "up" in parts:
            say("wayline up ...")
            if (seconds := await measures.up_boot_s(root)) is not None:
                results.up_s.append(seconds)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return results


def _own_directory() -> Path:
    """On the disk of the checkout: what is measured is written to be there after a power cut."""
    (ROOT / ".wayline").mkdir(exist_ok=True, mode=0o711)
    root = Path(tempfile.mkdtemp(prefix="bench-", dir=ROOT / ".wayline"))
    root.chmod(0o711)
    return root


async def _measure(
    platform: BenchPlatform,
    client: Client,
    results: Results,
    *,
    parts: set[str],
    rounds: int,
    input_chars: Sequence[int],
) -> None:
    for engine in ENGINES:
        await client.keep(engine, 16, seconds=2)
    for number in range(1, rounds + 1):
        say(f"round {number} of {rounds}")
        if "load" in parts:
            await _load(platform, client, results)
        if "inputs" in parts:
            results.inputs.append(await inputs.measure(platform, client, input_chars))
            for one in results.inputs[-1]:
                cpu = one.sustained.cpu_ms["router"]
                say(f"{one.kind}: {one.sustained.jobs_per_s:.0f} jobs/s, router {cpu:.2f} ms CPU a job")
        if "model" in parts:
            results.model_calls.append(await model_call.measure(platform, client))
            say(f"{results.model_calls[-1]}")
        if "most" in parts:
            for engine, most in (await measures.most_in_flight(client, results.most)).items():
                results.most[engine].append(most)
                say(f"{engine}: {most} in flight at 200 ms")
    results.rss_mb = {name: platform.rss_mb(name) for name in (*platform.processes, "nats", "postgres")}
    if "memory" in parts:
        for engine in ENGINES:
            results.memory[engine].append(await measures.memory(platform, client, engine))
            say(f"memory {engine}: {results.memory[engine][-1]}")
    if "recovery" in parts:
        results.recovery.append(await measures.recovery(platform, client))
        say(f"{results.recovery[-1]}")
    if "cold" in parts:
        results.cold = await cold.resume(platform)
        say(f"{results.cold}")


async def _load(platform: BenchPlatform, client: Client, results: Results) -> None:
    for engine in ENGINES:
        alone = await measures.alone(platform, client, engine)
        results.alone[engine].append(alone)
        claimed = f"; claimed {alone.claimed_p50_ms:.1f} p50, {alone.claimed_p99_ms:.1f} p99" if engine == OURS else ""
        say(f"{engine}: {alone.p50_ms:.1f} ms p50, {alone.p99_ms:.1f} p99{claimed}")
    for engine, sustained in (await measures.sustained(platform, client)).items():
        results.sustained[engine].append(sustained)
        cpu = ", ".join(f"{name} {ms:.2f}" for name, ms in sustained.cpu_ms.items())
        say(f"{engine}: {sustained.jobs_per_s:.0f} jobs/s, {sustained.total_cpu_ms:.2f} ms CPU a job: {cpu}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {','.join(PARTS)}")
    sizes = ",".join(map(str, inputs.INPUT_CHARS))
    parser.add_argument("--input-chars", default=sizes, help=f"the sizes of inputs that are measured: {sizes}")
    parser.add_argument(
        "--record-baseline", action="store_true", help="record what a job's CPU is over the floor's, for later runs"
    )
    parser.add_argument("--write", type=Path, help="put the table into this file, between its markers")
    asked = parser.parse_args()
    input_chars = [int(chars) for chars in asked.input_chars.split(",")]
    results = uvloop.run(run(set(asked.only.split(",")), asked.rounds, input_chars))
    text = report(results)
    say(f"\n{text}")
    if asked.write:
        page.write(asked.write, "speed", text)
        say(f"written to {asked.write}")
    _compare(results, record=asked.record_baseline)


def _compare(results: Results, *, record: bool) -> None:
    """Compare a job's CPU with what was recorded, and fail the run where it has grown; or record it."""
    found = baseline.ratios(results.sustained)
    if not found:
        return
    if record:
        return baseline.write(found, rounds=len(results.sustained[OURS]))
    holds, told = baseline.compare(found, baseline.read())
    say(f"\n{told}")
    if not holds:
        sys.exit(1)


if __name__ == "__main__":
    main()
