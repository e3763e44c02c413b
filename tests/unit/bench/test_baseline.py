"""A run of the bench fails where a job needs much more CPU than was recorded, whatever the machine does meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...bench.speed import baseline
from ...bench.speed.load import FLOOR, OURS
from ...bench.speed.measures import Sustained


def rounds(*executor_ms: float, slow: float = 1.0) -> dict[str, list[Sustained]]:
    """Return a run whose executor needs this CPU a job, on a machine that is so much slower."""
    ours = [Sustained(100, {"executor": ms * slow, "nats": 1.0 * slow}) for ms in executor_ms]
    return {OURS: ours, FLOOR: [Sustained(300, {FLOOR: 0.5 * slow, "nats": 0.5 * slow}) for _ in executor_ms]}


@pytest.mark.parametrize(("executor_ms", "holds"), [(2.0, True), (2.2, True), (2.4, False), (1.0, True)])
def test_a_job_that_needs_a_tenth_more_cpu_fails_the_run(executor_ms: float, holds: bool):
    before = baseline.ratios(rounds(2.0))

    assert baseline.compare(baseline.ratios(rounds(executor_ms)), before)[0] is holds


def test_a_slower_machine_fails_no_run():
    held, told = baseline.compare(baseline.ratios(rounds(2.0, slow=2.0)), baseline.ratios(rounds(2.0)))

    assert held and "+0%" in told


def test_what_is_recorded_is_read_again(tmp_path: Path):
    found = baseline.ratios(rounds(1.9, 2.0, 9.0))
    baseline.write(found, rounds=3, path=tmp_path / "baseline.json")

    assert baseline.read(tmp_path / "baseline.json") == found == {"all processes": 3.0, "executor": 2.0, "nats": 1.0}


def test_the_recorded_baseline_has_the_whole_and_its_parts():
    assert baseline.read().keys() >= {baseline.WHOLE, "executor", "router", "tracing"}
