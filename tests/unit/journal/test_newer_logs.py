"""Logs of other jobs that a newer build has written: they are left for later, and count as no fault of the job."""

from __future__ import annotations

from typing import Any, cast

import pytest

from wayline.contracts.errors import Retry
from wayline.journal import Head, JobLog, folded

FIRST: dict[str, Any] = {
    "job_id": "j1",
    "seq": 1,
    "at": "2026-05-01T00:00:00Z",
    "trace": {"trace_id": "t", "span_id": "s"},
}
ASKED = {**FIRST, "type": "aux.requested", "attempt_id": "a/j1/0/a1", "provider": "p", "model": "m"}


class Log:
    """A log of one record."""

    job_id = "j1"

    def __init__(self, *values: dict[str, Any]) -> None:
        self.values = list(values)

    async def records(self, upto: int) -> list[list[dict[str, Any]]]:
        return [self.values]


HEAD = cast(Head, type("At", (), {"sequence": 7}))


@pytest.mark.parametrize(
    "value",
    [{**FIRST, "type": "job.teleported"}, {**ASKED, "purpose": "prophecy"}],
    ids=["an unknown event", "an unknown value"],
)
async def test_another_jobs_log_of_a_newer_build_is_read_later(value: dict[str, Any]):
    with pytest.raises(Retry):
        await folded(cast(JobLog, Log(value)), HEAD)


async def test_another_jobs_log_that_is_known_is_read():
    job = await folded(cast(JobLog, Log({**ASKED, "purpose": "memory"})), HEAD)

    assert job.remembering.begun
