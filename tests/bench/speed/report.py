"""The results as a table: medians with their range, ratios within the run, and what the issue asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from .. import page
from ..adapters.ways import AGAINST, RAW, SDK_RATIO_MAX, TYPED
from ..page import Row
from .bench_platform import ACK_WAIT_S
from .cold import STEPS, Cold
from .inputs import Inputs
from .load import FLOOR, OURS
from .measures import P50_MAX_MS, THINKING_MS, Alone, Memory, Recovery, Sustained
from .model_call import ModelCall

CLAIMED_P50_MAX_MS = 6.0
ROUTER_CPU_MAX_MS = 0.8
"""For each job, with any input: its first thousand characters must not cost more than all the rest."""


@dataclass
class Results:
    """Everything one run has measured; lists hold a value a round."""

    alone: dict[str, list[Alone]] = field(default_factory=lambda: {FLOOR: [], OURS: []})
    sustained: dict[str, list[Sustained]] = field(default_factory=lambda: {FLOOR: [], OURS: []})
    inputs: list[list[Inputs]] = field(default_factory=list)
    model_calls: list[ModelCall] = field(default_factory=list)
    most: dict[str, list[int]] = field(default_factory=lambda: {FLOOR: [], OURS: []})
    memory: dict[str, list[Memory]] = field(default_factory=lambda: {FLOOR: [], OURS: []})
    recovery: list[Recovery] = field(default_factory=list)
    cold: Cold | None = None
    boot_s: dict[str, float] = field(default_factory=dict)
    rss_mb: dict[str, float] = field(default_factory=dict)
    up_s: list[float] = field(default_factory=list)
    load_before: float = 0.0


def report(results: Results) -> str:
    """The whole part."""
    number = max(len(results.sustained[OURS]), len(results.inputs))
    rounds = f"{number} rounds, floor and Wayline in turn: median [least..most]."
    facts = f"{page.machine(results.load_before)} {rounds}"
    weighed = page.table(["process", "CPU ms a job", "RSS, MB", "boot, s"], _processes(results))
    calls = page.rows("bare SDK, CPU ms", _model_calls(results.model_calls))
    parts = [page.rows("floor", _rows(results)), *([_inputs(results.inputs)] if results.inputs else []), calls, weighed]
    return "\n".join([facts, "", *parts])


def _rows(results: Results) -> list[Row]:
    alone, sustained = results.alone, results.sustained
    recovery = results.recovery
    rows = [
        _both("overhead of a job, 1 in flight, p50 ms", alone, "p50_ms", digits=1),
        _both("overhead of a job, 1 in flight, p99 ms", alone, "p99_ms", digits=1),
        Row(
            "submit → claimed, 1 in flight, p50 ms",
            [one.claimed_p50_ms for one in alone[OURS]],
            digits=1,
            at_most=(None, CLAIMED_P50_MAX_MS),
        ),
        Row("submit → claimed, 1 in flight, p99 ms", [one.claimed_p99_ms for one in alone[OURS]], digits=1),
        _both("jobs/s, 64 in flight, one executor", sustained, "jobs_per_s", ratio_at_least=(1 / 3, 1 / 2)),
        Row("executor, CPU ms a job", [s.cpu_ms["executor"] for s in sustained[OURS]], digits=2, at_most=(6, 3)),
        _both("all processes, CPU ms a job, spans on", sustained, "total_cpu_ms", digits=2, at_most=(10, 6)),
        Row("last result to last span stored, s", [s.caught_up_s for s in sustained[OURS]], digits=1),
        Row(
            f"jobs in flight, {THINKING_MS} ms model, p50 ≤ {P50_MAX_MS:.0f} ms",
            results.most[OURS],
            results.most[FLOOR],
            ratio_at_least=(1 / 3, 1 / 2),
        ),
        _both("executor alone: MB per 1,000 in flight", results.memory, "per_thousand_mb", digits=1, at_most=(30, 20)),
        Row("`wayline up`, initialised, s until ready", results.up_s, digits=1, at_most=(5, 2)),
        Row(
            f"kill -9 of one of two executors, ack_wait {ACK_WAIT_S:.0f} s: last job taken over after s",
            [r.taken_over_s for r in recovery],
            digits=1,
        ),
        Row("… last job done after s", [r.done_s for r in recovery], digits=1),
    ]
    if (cold := results.cold) is not None:
        rows += [
            Row(f"{STEPS} tool calls of 5 KB, {cold.tokens // 1_000}k tokens: log, MB", [cold.log_mb], digits=2),
            Row("… requests to read it back", [cold.requests]),
            Row("… read and folded cold, s", [cold.seconds], digits=2),
        ]
    return rows


def _inputs(measured: Sequence[Sequence[Inputs]]) -> str:
    """What jobs cost by the size of their input; each round has measured the same kinds."""
    head = ["64 in flight, an agent as it is by default", "jobs/s", "router, CPU ms", "all processes, CPU ms", "aim"]
    lines = []
    for several in zip(*measured, strict=True):
        found = [one.sustained for one in several]
        router = median(one.cpu_ms["router"] for one in found)
        held = "aim" if router <= ROUTER_CPU_MAX_MS else "**missed**"
        rate, whole = median(one.jobs_per_s for one in found), median(one.total_cpu_ms for one in found)
        asked = f"router ≤ {ROUTER_CPU_MAX_MS:g}: {held}"
        lines.append([several[0].kind, f"{rate:.0f}", f"{router:.2f}", f"{whole:.2f}", asked])
    return page.table(head, lines)


def _model_calls(measured: Sequence[ModelCall]) -> list[Row]:
    """What a model call costs the executor, beside the official SDK making the same one."""
    whole = [one.executor for one in measured]
    against = {TYPED: [one.typed for one in measured], RAW: [one.raw for one in measured]}
    return [
        *(
            Row(
                f"executor, a model call, against {AGAINST[way]}",
                whole,
                found,
                digits=2,
                ratio_at_most=(None, SDK_RATIO_MAX),
            )
            for way, found in against.items()
        ),
        Row("… of it the adapter", [one.adapter for one in measured], digits=2),
        Row("… of it beyond the adapter", [one.beyond for one in measured], digits=2),
    ]


def _both(name: str, values: Mapping[str, Sequence[object]], field_name: str, **asked: Any) -> Row:
    """A measure that was taken of both engines."""
    floor, ours = ([getattr(value, field_name) for value in values.get(engine, ())] for engine in (FLOOR, OURS))
    return Row(name, ours, floor, **asked)


def _processes(results: Results) -> list[list[str]]:
    """Where the CPU goes, and what each process weighs."""
    rows = []
    for engine in (OURS, FLOOR):
        rounds = results.sustained[engine]
        for name in rounds[0].cpu_ms if rounds else ():
            cpu = median(one.cpu_ms[name] for one in rounds)
            rss, boot = results.rss_mb.get(name), results.boot_s.get(name)
            label = f"{name} (under the floor)" if engine == FLOOR and name != FLOOR else name
            rows.append([label, f"{cpu:.2f}", f"{rss:.0f}" if rss else "", f"{boot:.1f}" if boot else ""])
    return rows
