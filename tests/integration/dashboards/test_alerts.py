"""When alerts ring and when they do not: Prometheus' own tool plays invented series to the rules."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from wayline.chassis.topology import CONSUMERS
from wayline.standalone.services import MEMBERS
from wayline.testkit.walks import cases

from .conftest import DEPLOY, rules

DEAD = 'jetstream_stream_total_messages{stream_name="DEAD"}'
WAITING = 'jetstream_consumer_num_pending{stream_name="RUN",consumer_name="batch"}'
LOST = 'wayline_spans_dropped_total{service="executor",where="buffer"}'
FULL = 'jetstream_stream_full_ratio{stream_name="EVENTS"}'
UNPRICED = 'wayline_ledger_unpriced_calls{model="m",agent="a"}'
ENDED = (
    'wayline_jobs_ended_total{outcome="completed",agent="a"}',
    'wayline_jobs_ended_total{outcome="failed",agent="a"}',
)
OPENED = 'wayline_breakers_opened_total{model="m"}'
SPENT = tuple(f'wayline_budget_usd{{tenant="t",budget="b",figure="{figure}"}}' for figure in ("spent", "limit"))
DRIFTED = 'wayline_tracing_drift_total{drift="row",outcome="mended"}'
NEEDED = 'wayline_need_met{service="router",need="postgres"}'

BEHIND = 'wayline_postgres_standby_behind_bytes{standby="s"}'

UP = tuple(f'up{{job="wayline",container="{member.name}",instance="i"}}' for member in MEMBERS)

CASES: dict[str, tuple[str, str | tuple[str, ...], str | tuple[str, ...], int]] = {
    "a dead letter rings": ("WaylineDeadLetters", DEAD, "0x90 1x30", 1),
    "one of yesterday does not": ("WaylineDeadLetters", DEAD, "3x120", 0),
    "a queue that stands rings": ("WaylineQueueLag", WAITING, "500x120", 1),
    "a queue that grows rings": ("WaylineQueueLag", WAITING, "500+10x120", 1),
    "a long queue that shrinks does not": ("WaylineQueueLag", WAITING, "5000-10x120", 0),
    "a few messages do not": ("WaylineQueueLag", WAITING, "5x120", 0),
    "the first lost span rings": ("WaylineSpansDropped", LOST, "_x110 7x10", 1),
    "a later one does too": ("WaylineSpansDropped", LOST, "7x110 8x10", 1),
    "spans lost long ago do not": ("WaylineSpansDropped", LOST, "7x120", 0),
    "a comparison that falls behind rings": ("WaylineDriftLag", "wayline_tracing_drift_lag", "20000+10x120", 1),
    "one that catches up does not": ("WaylineDriftLag", "wayline_tracing_drift_lag", "20000-100x120", 0),
    "a log that fills rings": ("WaylineStreamFilling", FULL, "0.61x120", 1),
    "a log with room does not": ("WaylineStreamFilling", FULL, "0.59x120", 0),
    "a log that is nearly full rings louder": ("WaylineStreamNearlyFull", FULL, "0.75x120", 1),
    "one that only fills does not": ("WaylineStreamNearlyFull", FULL, "0.74x120", 0),
    "dead letters may fill their stream": ("WaylineStreamFilling", FULL.replace("EVENTS", "DEAD"), "1x120", 0),
    "many failed jobs ring": ("WaylineJobsFail", ENDED, "0+3x120", 1),
    "jobs that complete do not": ("WaylineJobsFail", ENDED[0], "0+3x120", 0),
    "a model that is left alone rings": ("WaylineModelLeftAlone", OPENED, "_x110 1x10", 1),
    "one of long ago does not": ("WaylineModelLeftAlone", OPENED, "1x120", 0),
    "a budget that was never used does not": ("WaylineBudgetNearlySpent", SPENT[0], "0x120", 0),
    "a budget that is spent rings": ("WaylineBudgetNearlySpent", SPENT, "9x120", 1),
    "rows that differ from their log ring": ("WaylineDrift", DRIFTED, "_x110 1x10", 1),
    "those that differed long ago do not": ("WaylineDrift", DRIFTED, "1x120", 0),
    "a service without the bus rings": ("WaylineBusAway", 'wayline_bus_connected{service="router"}', "0x120", 1),
    "one with it does not": ("WaylineBusAway", 'wayline_bus_connected{service="router"}', "1x120", 0),
    "a service without Postgres rings": ("WaylinePostgresAway", NEEDED, "0x120", 1),
    "one that can write does not": ("WaylinePostgresAway", NEEDED, "1x120", 0),
    "a standby that stays behind rings": ("WaylineStandbyBehind", BEHIND, "1e8x120", 1),
    "one that catches up at once does not": ("WaylineStandbyBehind", BEHIND, "1e8x109 0 1e8x20", 0),
    "a standby that left rings": ("WaylineStandbyGone", "wayline_postgres_standbys", "1x100 0x20", 1),
    "a Postgres that never had one does not": ("WaylineStandbyGone", "wayline_postgres_standbys", "0x120", 0),
    "an unknown price rings": ("WaylineUnknownPrice", UNPRICED, "2x120", 1),
    "known prices do not": ("WaylineUnknownPrice", UNPRICED, "0x120", 0),
    "a service that is gone rings": ("WaylineServiceDown", 'up{job="wayline",instance="i"}', "0x120", 1),
    "one that answers does not": ("WaylineServiceDown", 'up{job="wayline",instance="i"}', "1x120", 0),
    "one that DNS does not name rings": ("WaylineServiceAbsent", UP[1:], "1x120", 1),
    "one that it names no more rings": ("WaylineServiceAbsent", UP, "1x110 stale", len(UP)),
    "all that are there do not": ("WaylineServiceAbsent", UP, "1x120", 0),
}
QUEUES = tuple(
    f'jetstream_consumer_num_ack_pending{{stream_name="{queue.stream}",consumer_name="{queue.name}"}}'
    for queue in CONSUMERS
)
LIMITS = tuple(queue.max_ack_pending for queue in CONSUMERS)
CASES |= {
    "every queue at its limit rings": (
        "WaylineAckPendingAtLimit",
        QUEUES,
        tuple(f"{limit}x120" for limit in LIMITS),
        len(QUEUES),
    ),
    "a queue below it does not": (
        "WaylineAckPendingAtLimit",
        QUEUES,
        tuple(f"{limit - 1}x120" for limit in LIMITS),
        0,
    ),
}


def promtool(binaries: Path, *words: str | Path) -> str:
    done = subprocess.run([binaries / "promtool", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_prometheus_accepts_the_configuration_and_the_rules(binaries: Path):
    said = promtool(binaries, "check", "config", DEPLOY / "prometheus/prometheus.yml")

    assert f"{len(rules())} rules found" in said


def test_alerts_ring_when_they_should_and_are_silent_otherwise(binaries: Path, tmp_path: Path):
    assert {alert for alert, *_ in CASES.values()} == {rule["alert"] for rule in rules()}
    (tmp_path / "alerts.yml").write_text(
        yaml.safe_dump(
            {
                "rule_files": [str(path) for path in (DEPLOY / "prometheus/rules").glob("*.yml")],
                "evaluation_interval": "1m",
                "tests": [_played(name, *case) for name, case in cases(CASES.items(), share=4)],
            }
        )
    )

    promtool(binaries, "test", "rules", tmp_path / "alerts.yml")


def test_each_alert_names_a_runbook_that_stands_in_the_docs():
    headings = re.findall(r"^### (\w+)$", (DEPLOY.parent / "docs/operating.md").read_text(), re.MULTILINE)

    for rule in rules():
        assert rule["annotations"]["runbook"] == f"docs/operating.md#{rule['alert'].lower()}"
        assert rule["alert"] in headings


def _played(
    name: str, alert: str, series: str | tuple[str, ...], values: str | tuple[str, ...], rings: int
) -> dict[str, Any]:
    firing = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)'
    expected = {"expr": firing, "eval_time": "115m", "exp_samples": [{"labels": "{}", "value": rings}]}
    named = (series,) if isinstance(series, str) else series
    played = (values,) * len(named) if isinstance(values, str) else values
    return {
        "name": name,
        "interval": "1m",
        "input_series": [{"series": one, "values": its} for one, its in zip(named, played, strict=True)],
        "promql_expr_test": [expected],
    }
