"""What recording a job's spans costs, beside the same calls where nothing is recorded.

Run as `python -m tests.bench.telemetry`: the CPU of one job's spans with their encoding, both ways in turn.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from statistics import median

from opentelemetry.trace import SpanKind

from wayline.contracts import ids
from wayline.telemetry import BusExporter, JobTrace, Telemetry, carried, names

from .page import table

TURNS = 5
ROUNDS = 60
JOBS = 50
"""Of one round; their spans are about what a process sends at once."""
SERVICES = ("gateway", "router", "executor", "tool_registry")
RECORDED: dict[str, str] = {}
NOTHING = {"OTEL_SDK_DISABLED": "true"}


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


async def measure() -> float:
    """Return the CPU of one job's spans in microseconds, the best of many rounds."""
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
    return best * 1e6


def in_a_process(variables: dict[str, str]) -> float:
    """Measure in a process of its own: providers read the variables once."""
    command = [sys.executable, "-m", "tests.bench.telemetry", "--measure"]
    run = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=True)
    return float(run.stdout)


def main(arguments: Sequence[str]) -> None:
    """Measure both ways in turn and print what came out."""
    if "--measure" in arguments:
        print(asyncio.run(measure()))
        return
    turns = [(in_a_process(NOTHING), in_a_process(RECORDED)) for _ in range(TURNS)]
    nothing, recorded = (f"{median(values):.0f}" for values in zip(*turns, strict=True))
    print(table(["measure", "nothing recorded", "spans recorded"], [["CPU a job, µs", nothing, recorded]]))


if __name__ == "__main__":
    main(sys.argv[1:])
