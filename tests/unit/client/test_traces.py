"""A trace is drawn when the spans of its services have had the time to arrive."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wayline.client import ApiError, traces, whole_trace
from wayline.client.traces import LEAVES_AFTER_S, is_whole

ENDED = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = ENDED + timedelta(seconds=LEAVES_AFTER_S)


def trace(*, status: str = "ok", missing: int = 0) -> dict[str, Any]:
    leaf = {"start": "2026-01-01T11:59:59+00:00", "duration_ms": 1_000.0, "children": []}
    root = {"start": "2026-01-01T10:00:00+00:00", "duration_ms": 5.0, "status": status, "children": [leaf]}
    return {"root": root, "totals": {"missing": missing}}


class Gateway:
    """Answers for one job: its status once, then its trace as it grows."""

    def __init__(self, status: str, *traces: dict[str, Any] | ApiError) -> None:
        self._status = status
        self.traces = list(traces)

    async def job(self, job_id: str) -> dict[str, Any]:
        return {"status": self._status}

    async def get(self, path: str) -> dict[str, Any]:
        answer = self.traces.pop(0) if len(self.traces) > 1 else self.traces[0]
        if isinstance(answer, ApiError):
            raise answer
        return answer


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(traces, "AGAIN_S", 0)


@pytest.mark.parametrize(
    ("seen", "now", "whole"),
    [
        (trace(), LATER, True),
        (trace(), LATER - timedelta(milliseconds=1), False),
        (trace(missing=1), LATER, False),
        (trace(status="open"), LATER, False),
    ],
)
def test_a_complete_trace_is_whole_one_export_after_its_last_span(seen, now, whole):
    assert is_whole(seen, now=now) is whole


async def test_a_trace_is_read_again_until_nothing_is_missing():
    absent = ApiError("no such job", status=404)
    gateway = Gateway("completed", absent, trace(status="open"), trace(missing=2), trace())

    assert await whole_trace(gateway, "j1") == trace()  # type: ignore[arg-type]


async def test_what_never_arrives_is_not_waited_for_beyond_the_limit():
    assert await whole_trace(Gateway("completed", trace(missing=1)), "j1", wait_s=0) == trace(missing=1)  # type: ignore[arg-type]


async def test_a_running_jobs_trace_is_shown_as_it_is():
    gateway = Gateway("running", trace(status="open"), trace())

    assert await whole_trace(gateway, "j1") == trace(status="open")  # type: ignore[arg-type]


async def test_a_job_without_a_trace_is_not_found_in_the_end():
    with pytest.raises(ApiError, match="no such job"):
        await whole_trace(Gateway("completed", ApiError("no such job", status=404)), "j1", wait_s=0)  # type: ignore[arg-type]
