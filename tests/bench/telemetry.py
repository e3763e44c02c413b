"""What recording spans costs, beside the same calls where nothing is recorded: CPU a job and memory a process.

python -m tests.bench.telemetry [--write docs/performance.md]

Both ways run in turn, each in a process of its own: providers read the variables once.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from opentelemetry.trace import SpanKind

from wayline.contracts import ids
from wayline.telemetry import BusExporter, JobTrace, Telemetry, carried, names

from . import page

TURNS = 5
ROUNDS = 60
JOBS = 50
"""Of one round; their spans are about what a process sends at once."""
SERVICES = ("gateway", "router", "executor", "tool_registry")
RECORDED: dict[str, str] = {}
NOTHING = {"OTEL_SDK_DISABLED": "true"}
CPU_MAX_MS = 0.2
"""How much more CPU a job may take where its spans are recorded."""
MEMORY_MAX_MB = 12.0
"""How much larger a process may be."""
WITHOUT_SDK = "import asyncio, pydantic, opentelemetry.trace"
WITH_SDK = f"{WITHOUT_SDK}, opentelemetry.sdk.trace"
"""A process has the SDK in memory even where it records nothing."""
MEASURE = "print(next(int(line.split()[1]) for line in open('/proc/self/status') if line.startswith('VmHWM')) / 1024)"


def job_spans(telemetry: dict[str, Telemetry], job: str) -> None:
    """Open the spans of a job with two tool calls, in the services that do."""
    job_trace = JobTrace.of("acme", job)
    here = {names.TENANT: "acme", names.JOB: job, names.NATS_DELIVERIES: 1}
    with telemetry["gateway"].span("publish jobs.submit.{tenant}", SpanKind.PRODUCER, here, parent=job_trace.context()):
        sent = carried()
    with telemetry["router"].handling("jobs.submit.{tenant}", sent, job_trace=job_trace, attributes=here):
        sent = carried()
    with telemetry["executor"].handling("jobs.run.{lane}.{tenant}", sent, job_trace=job_trace, attributes=here):
        for step in (1, 2):
            above = JobTrace.of("acme", job, ids.tool_span("acme", job, step, "1")).headers()
            with telemetry["tool_registry"].handling("tools.call.{tenant}", above, attributes=here):
                with telemetry["tool_registry"].calling("tools/call search", {names.MCP_METHOD: "tools/call"}):
                    carried()
        sent = carried()
    with telemetry["router"].handling("budgets.settle.{tenant}", sent, attributes=here):
        pass


async def cpu_ms() -> float:
    """Return the CPU of one job's spans in milliseconds, the best of many rounds."""
    exporters = {name: BusExporter(name) for name in SERVICES}
    telemetry = {name: Telemetry(name, exporter) for name, exporter in exporters.items()}

    async def send(batch: bytes) -> None:
        pass

    for exporter in exporters.values():
        exporter.start(send)
    best = float("inf")
    for turn in range(ROUNDS):
        started = time.process_time()
        for number in range(JOBS):
            job_spans(telemetry, f"{turn}-{number}")
        for exporter in exporters.values():
            await exporter.flush()
        best = min(best, (time.process_time() - started) / JOBS)
    for exporter in exporters.values():
        await exporter.stop()
    return best * 1_000


def memory_mb() -> float:
    """Return the most memory that this process has had."""
    # Not `ru_maxrss`: a process begins with that of the one that started it.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def in_a_process(variables: dict[str, str]) -> tuple[float, float]:
    """Measure in a process of its own: CPU a job in milliseconds and memory in MB."""
    cpu, memory = _printed_by(["-m", "tests.bench.telemetry", "--measure"], variables).split()
    return float(cpu), float(memory)


def imported_mb(imports: str) -> float:
    """Return the most memory of a process that imports this and ends."""
    return float(_printed_by(["-c", f"{imports}; {MEASURE}"], {}))


def _printed_by(arguments: list[str], variables: dict[str, str]) -> str:
    command = [sys.executable, *arguments]
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=True).stdout


def report(load_before: float) -> str:
    """Measure both ways in turn, and return a table of what recording adds."""
    turns = [(in_a_process(NOTHING), in_a_process(RECORDED)) for _ in range(TURNS)]
    imports = [(imported_mb(WITHOUT_SDK), imported_mb(WITH_SDK)) for _ in range(TURNS)]
    memory = [(nothing[1], recorded[1]) for nothing, recorded in turns]
    rows = [
        _row("CPU, ms a job", [(nothing[0], recorded[0]) for nothing, recorded in turns], CPU_MAX_MS, digits=3),
        _row("memory, MB a process", memory, MEMORY_MAX_MB, digits=1),
        _row("memory of the API alone, and with the SDK imported, MB", imports, MEMORY_MAX_MB, digits=1),
    ]
    table = page.table(["measure", "nothing recorded", "spans recorded", "more", "at most", "held"], rows)
    return f"{page.machine(load_before)} {TURNS} processes each way, in turn: medians.\n\n{table}"


def _row(name: str, pairs: list[tuple[float, float]], most: float, *, digits: int) -> list[str]:
    nothing, recorded = (median(values) for values in zip(*pairs, strict=True))
    more = median(recorded - nothing for nothing, recorded in pairs)
    values = (f"{value:.{digits}f}" for value in (nothing, recorded, more))
    return [name, *values, f"{most:g}", "yes" if more <= most else "**no**"]


def main() -> None:
    parser = argparse.ArgumentParser(description="What recording spans costs.")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    parser.add_argument("--measure", action="store_true", help="measure in this process, as the variables say")
    asked = parser.parse_args()
    if asked.measure:
        return print(asyncio.run(cpu_ms()), memory_mb())
    text = report(os.getloadavg()[0])
    if asked.write:
        page.write(asked.write, "telemetry", text)
    print(text)


if __name__ == "__main__":
    main()
